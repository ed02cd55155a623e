"""The release and channel of the Gateway API that the recorded answers belong to."""

RELEASE, CHANNEL = "1.6.3", "experimental"

"""What the plugin tells about itself: Events and metrics."""

"""Values that the packages hand to each other: frozen, no IO."""

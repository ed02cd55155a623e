"""The reconcilers for Gloo Platform's RouteTables: object in, object out; pure."""

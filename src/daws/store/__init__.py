"""The metadata service: one port, several backends. Backends do not know each other. They share the rules, which are
written once, in `memory`."""

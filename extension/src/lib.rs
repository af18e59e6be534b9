//! Leases with fences for SQLite, as a loadable extension.

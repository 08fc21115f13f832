//! Window against a path in miniature; the simulator has the whole tables.

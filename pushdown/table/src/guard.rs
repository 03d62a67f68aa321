//! What a query may do: clauses, functions, memory, overflow.

pub(crate) mod checks;
pub(crate) mod distinct_keys;
pub(crate) mod duplicate;
pub(crate) mod extremes;
pub(crate) mod function_memory;
pub(crate) mod functions;
pub(crate) mod inlining;
pub(crate) mod overflow;
pub(crate) mod pattern;
pub(crate) mod rewrite;
pub(crate) mod syntax;
pub(crate) mod window_memory;

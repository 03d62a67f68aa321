//! pushdown

//! Doc.

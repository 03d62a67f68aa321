//! Files and folders that nobody else may read or change.

pub(crate) mod file;
pub(crate) mod folder;

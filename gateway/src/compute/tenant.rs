//! Who shares the machine.

use std::sync::Arc;

/// Whose work it is: the access key of a request that the store accepted.
///
/// Requests without a signature share the default, and so does what is done before the store has answered: until then
/// a key is only claimed. Clones share the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tenant(Option<Arc<str>>);

impl Tenant {
    /// The tenant of an access key.
    pub fn of(access_key: Option<&str>) -> Self {
        Self(access_key.map(Arc::from))
    }
}

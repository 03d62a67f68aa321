//! Whose signatures callers have: keys of accounts, or sessions of roles.

use anyhow::Result;
use pushdown_testkit::{Keys, RealStore};

use crate::it::sessions::roles::Role;

/// Lifetime of sessions: longer than an attack takes.
const SESSION_SECONDS: u64 = 60;

/// What callers sign with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Accounts<'a> {
    /// The keys of the store's accounts.
    Keys,
    /// New sessions of these roles.
    Sessions(&'a Roles),
}

/// Roles with the rights of owner, reader and guest.
#[derive(Debug)]
pub(super) struct Roles {
    owner: Role,
    reader: Role,
    guest: Role,
}

impl Roles {
    pub(super) fn create(store: &RealStore) -> Result<Self> {
        let new = Self {
            owner: Role::create(store, "owner")?,
            reader: Role::create(store, "reader")?,
            guest: Role::create(store, "guest")?,
        };
        // S3 answers 404 to those alone who may list.
        new.owner.grant(store, &["s3:*"])?;
        Ok(new)
    }
}

impl Accounts<'_> {
    /// The credentials of owner, reader and guest.
    pub(super) fn keys(self, store: &RealStore) -> Result<[Keys; 3]> {
        let Self::Sessions(roles) = self else {
            return Ok([&store.owner, &store.reader, &store.guest].map(Clone::clone));
        };
        let session = |role: &Role| role.assume(store, SESSION_SECONDS);
        Ok([
            session(&roles.owner)?,
            session(&roles.reader)?,
            session(&roles.guest)?,
        ])
    }

    /// Grants the reader the right to read objects, or withdraws it. It takes effect soon after.
    pub(super) fn set_read_right(self, store: &RealStore, can_read: bool) -> Result<()> {
        match self {
            Self::Keys => store.set_read_right(can_read),
            Self::Sessions(roles) if can_read => roles.reader.grant(store, &["s3:GetObject"]),
            Self::Sessions(roles) => roles.reader.withdraw(store),
        }
    }
}

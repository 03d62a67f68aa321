//! Who may do what: the gateway's own keys, their grants, and the decision on a request. No HTTP.
//!
//! A keys file ([`Keys::from_file`]) lists the keys. [`Grants::decide`] turns the accesses that a request needs into an
//! [`Allowed`], the only proof that a read of the store is permitted. A [`KeysWatcher`] replaces all keys at once when the file
//! changes.

mod action;
mod caller;
mod file;
mod grant;
mod grants;
mod key;
mod model_scope;
mod names;
mod reload;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use action::{Access, Action, Target};
pub use caller::Caller;
pub use file::KeyFaults;
pub use grant::Grant;
pub use grants::{Allowed, Denied, Grants, Needs};
pub use key::{Key, ModelNames, Secret, Upstream};
pub use model_scope::ModelScope;
pub use names::{UNSAFE_KEY, is_unsafe_key};
pub use reload::{KeysWatcher, Reload};

use key::KeySettings;

/// The keys in use. Clones share them, and see a reload at once.
#[derive(Debug, Clone)]
pub struct Keys {
    current: Arc<ArcSwap<KeyTable>>,
}

/// The keys of one generation of the file.
#[derive(Debug, Default)]
struct KeyTable {
    generation: u64,
    keys: BTreeMap<String, Arc<Key>>,
}

impl Keys {
    /// Reads a keys file.
    ///
    /// # Errors
    /// All faults of the file at once: of its mode, its syntax, its fields, and its secrets.
    pub fn from_file(path: &Path) -> Result<Self, KeyFaults> {
        file::load(path).map(Self::new)
    }

    /// Reads the text of a keys file. A relative `secret-file` is relative to the working directory.
    ///
    /// # Errors
    /// All faults of the text at once.
    pub fn from_text(text: &str) -> Result<Self, KeyFaults> {
        file::from_text(text).map(Self::new)
    }

    /// Keys for tests, as `(access key, secret)`. Each has `upstream = "self"` and no grants, and neither text is checked.
    pub fn for_test(keys: &[(&str, &str)]) -> Self {
        let settings = keys.iter().map(|(access_key, secret)| KeySettings {
            access_key: (*access_key).to_owned(),
            secrets: vec![Secret::new((*secret).to_owned())],
            tenant: (*access_key).to_owned(),
            upstream: Upstream::Caller,
            grants: Grants::default(),
            models: ModelNames::All,
        });
        Self::new(settings.collect())
    }

    fn new(settings: Vec<KeySettings>) -> Self {
        let table = KeyTable::default().updated(settings).unwrap_or_default();
        Self {
            current: Arc::new(ArcSwap::from_pointee(table)),
        }
    }

    /// The key with this access key.
    pub fn get(&self, access_key: &str) -> Option<Arc<Key>> {
        self.current.load().keys.get(access_key).cloned()
    }

    /// All keys, in the order of their access keys.
    pub fn all(&self) -> Vec<Arc<Key>> {
        self.current.load().keys.values().cloned().collect()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.current.load().keys.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often the keys have changed, the first file included.
    pub fn generation(&self) -> u64 {
        self.current.load().generation
    }

    /// Replaces all keys, and returns the new generation. `None` if nothing changes. One task at a time may call this.
    fn replace(&self, settings: Vec<KeySettings>) -> Option<u64> {
        let table = self.current.load().updated(settings)?;
        let generation = table.generation;
        self.current.store(Arc::new(table));
        Some(generation)
    }
}

impl KeyTable {
    /// The next generation; `None` if nothing changes. A key with the same settings stays the same [`Key`], so that its
    /// decisions stay valid without being made again.
    fn updated(&self, settings: Vec<KeySettings>) -> Option<Self> {
        let generation = self.generation + 1;
        let mut has_changed = settings.len() != self.keys.len();
        let keys = settings
            .into_iter()
            .map(|settings| {
                let access_key = settings.access_key.clone();
                let old = self.keys.get(&access_key);
                let key = if let Some(old) = old.filter(|old| *old.settings() == settings) {
                    Arc::clone(old)
                } else {
                    has_changed = true;
                    Arc::new(Key::new(settings, generation))
                };
                (access_key, key)
            })
            .collect();
        has_changed.then_some(Self { generation, keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAINER: &str = "TESTTRAINER00001";
    const OTHER: &str = "TESTOTHERKEY0001";
    const SECRET: &str = "one-secret-of-a-test";

    fn settings(keys: &Keys) -> Vec<KeySettings> {
        keys.all().iter().map(|key| key.settings().clone()).collect()
    }

    #[test]
    fn a_key_is_found_by_its_access_key() {
        let keys = Keys::for_test(&[(TRAINER, SECRET), (OTHER, "another-secret")]);
        let key = keys.get(TRAINER).unwrap();
        assert_eq!((key.access_key(), key.tenant()), (TRAINER, TRAINER));
        assert_eq!(key.secrets()[0].as_bytes(), SECRET.as_bytes());
        assert_eq!((keys.len(), keys.generation()), (2, 1));
        assert!(keys.get("TESTTRAINER0000").is_none() && keys.get("").is_none());
    }

    #[test]
    fn a_key_that_stays_the_same_keeps_its_generation() {
        let keys = Keys::for_test(&[(TRAINER, SECRET), (OTHER, "another-secret")]);
        let before = keys.get(TRAINER).unwrap();
        let changed = Keys::for_test(&[(TRAINER, SECRET), (OTHER, "a-new-secret")]);
        assert_eq!(keys.replace(settings(&changed)), Some(2));
        assert!(Arc::ptr_eq(&before, &keys.get(TRAINER).unwrap()));
        assert_eq!(keys.get(OTHER).unwrap().generation(), 2);
        assert_eq!(keys.replace(settings(&changed)), None);
        assert_eq!(keys.generation(), 2);
    }

    #[test]
    fn a_removed_key_is_a_change_that_every_clone_sees() {
        let keys = Keys::for_test(&[(TRAINER, SECRET), (OTHER, "another-secret")]);
        let clone = keys.clone();
        let fewer = Keys::for_test(&[(TRAINER, SECRET)]);
        assert_eq!(keys.replace(settings(&fewer)), Some(2));
        assert!(clone.get(OTHER).is_none() && clone.get(TRAINER).is_some());
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let keys = Keys::for_test(&[(TRAINER, SECRET)]);
        let shown = format!("{keys:?} {:?}", keys.get(TRAINER).unwrap());
        assert!(shown.contains(TRAINER) && !shown.contains(SECRET), "{shown}");
    }
}

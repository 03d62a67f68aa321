//! Reloads the keys file while the gateway runs.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use super::key::KeySettings;
use super::{KeyFaults, Keys, file};

/// How often the file is read. Its content is compared, not its time: mounted secrets change by a symbolic link.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// What reading the keys file again found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// Other keys, which are in use now.
    Replaced {
        /// The new generation.
        generation: u64,
        /// The number of keys.
        keys: usize,
    },
    /// The keys in use. Reported after SIGHUP, and once the faults of the file are repaired.
    Unchanged,
    /// Faults. The keys in use stay in use.
    Failed(KeyFaults),
}

/// Watches the keys file until it is dropped.
#[derive(Debug)]
pub struct KeysWatcher {
    _task: AbortOnDropHandle<()>,
}

/// Replaces the keys, and reports what is new.
struct Reloader<F> {
    keys: Keys,
    path: PathBuf,
    report: F,
    last_faults: Option<KeyFaults>,
}

impl KeysWatcher {
    /// Starts a task that reads the file every 5 s and on SIGHUP, and replaces `keys` at once if they differ. The task calls
    /// `report` for every change: of the keys, or of the faults of the file.
    ///
    /// Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// The handler of SIGHUP cannot be installed.
    pub fn start(keys: Keys, path: PathBuf, report: impl Fn(&Reload) + Send + 'static) -> io::Result<Self> {
        let hangups = signal(SignalKind::hangup())?;
        let reloader = Reloader {
            keys,
            path,
            report,
            last_faults: None,
        };
        Ok(Self {
            _task: AbortOnDropHandle::new(tokio::spawn(watch(reloader, hangups))),
        })
    }
}

async fn watch<F: Fn(&Reload)>(mut reloader: Reloader<F>, mut hangups: Signal) {
    let mut polls = tokio::time::interval(POLL_INTERVAL);
    polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let is_requested = tokio::select! {
            _ = polls.tick() => false,
            Some(()) = hangups.recv() => true,
        };
        let loaded = load(reloader.path.clone()).await;
        reloader.apply(loaded, is_requested);
    }
}

async fn load(path: PathBuf) -> Result<Vec<KeySettings>, KeyFaults> {
    let read = path.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "reads small files, as `tokio::fs` does, one at a time"
    )]
    let loading = tokio::task::spawn_blocking(move || file::load(&read));
    match loading.await {
        Ok(loaded) => loaded,
        Err(error) => Err(KeyFaults::from_fault(&path, format!("cannot read it: {error}"))),
    }
}

impl<F: Fn(&Reload)> Reloader<F> {
    fn apply(&mut self, loaded: Result<Vec<KeySettings>, KeyFaults>, is_requested: bool) {
        let reload = match loaded.map(|settings| self.keys.replace(settings)) {
            Ok(Some(generation)) => Reload::Replaced {
                generation,
                keys: self.keys.len(),
            },
            Ok(None) => Reload::Unchanged,
            Err(faults) => Reload::Failed(faults),
        };
        let faults = match &reload {
            Reload::Failed(faults) => Some(faults.clone()),
            Reload::Replaced { .. } | Reload::Unchanged => None,
        };
        let is_replaced = matches!(reload, Reload::Replaced { .. });
        if is_requested || is_replaced || faults != self.last_faults {
            (self.report)(&reload);
        }
        self.last_faults = faults;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const FIRST: &str = "TESTFIRSTKEY0001";
    const SECOND: &str = "TESTSECONDKEY001";

    fn block(access_key: &str) -> String {
        format!(
            "[[key]]\naccess-key = \"{access_key}\"\nsecret = \"a-secret-of-a-test\"\nupstream = \"self\"\n"
        )
    }

    /// By a link, as Kubernetes replaces mounted secrets.
    fn replace_file(path: &Path, text: &str) {
        let target = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
        let (_, target) = target.keep().unwrap();
        std::fs::write(&target, text).unwrap();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600)).unwrap();
        let link = target.with_extension("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        std::fs::rename(&link, path).unwrap();
    }

    fn settings(keys: &Keys) -> Vec<KeySettings> {
        keys.all().iter().map(|key| key.settings().clone()).collect()
    }

    fn watched(path: &Path) -> (Keys, KeysWatcher, UnboundedReceiver<Reload>) {
        let keys = Keys::from_file(path).unwrap();
        let (sender, receiver) = unbounded_channel();
        let report = move |reload: &Reload| sender.send(reload.clone()).unwrap();
        let watcher = KeysWatcher::start(keys.clone(), path.to_owned(), report).unwrap();
        (keys, watcher, receiver)
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_replaces_all_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        replace_file(&path, &block(FIRST));
        let (keys, _watcher, mut reloads) = watched(&path);
        replace_file(&path, &block(SECOND));
        let replaced = Reload::Replaced {
            generation: 2,
            keys: 1,
        };
        assert_eq!(reloads.recv().await, Some(replaced));
        assert!(keys.get(FIRST).is_none() && keys.get(SECOND).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_file_keeps_the_keys_until_it_is_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        replace_file(&path, &block(FIRST));
        let (keys, _watcher, mut reloads) = watched(&path);
        for broken in ["", "[[key", "[[key]]\n"] {
            replace_file(&path, broken);
            let reload = reloads.recv().await.unwrap();
            assert!(matches!(reload, Reload::Failed(_)), "{reload:?}");
            assert!(keys.get(FIRST).is_some());
        }
        std::fs::remove_file(&path).unwrap();
        let reload = reloads.recv().await.unwrap();
        assert!(matches!(reload, Reload::Failed(_)), "{reload:?}");
        replace_file(&path, &block(FIRST));
        assert_eq!(reloads.recv().await, Some(Reload::Unchanged));
        assert_eq!(keys.generation(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_its_handle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        replace_file(&path, &block(FIRST));
        let (_keys, watcher, mut reloads) = watched(&path);
        drop(watcher);
        assert_eq!(reloads.recv().await, None);
    }

    #[test]
    fn the_same_outcome_is_reported_once_unless_it_is_requested() {
        let count = std::cell::Cell::new(0);
        let mut reloader = Reloader {
            keys: Keys::for_test(&[(FIRST, "a-secret-of-a-test")]),
            path: PathBuf::new(),
            report: |_: &Reload| count.set(count.get() + 1),
            last_faults: None,
        };
        let faults = || KeyFaults::from_fault(Path::new("keys.toml"), "no keys".to_owned());
        let same = || settings(&Keys::for_test(&[(FIRST, "a-secret-of-a-test")]));
        for (loaded, is_requested, expected) in [
            (Ok(same()), false, 0),
            (Ok(same()), true, 1),
            (Err(faults()), false, 2),
            (Err(faults()), false, 2),
            (Err(faults()), true, 3),
            (Ok(same()), false, 4),
            (Ok(same()), false, 4),
        ] {
            reloader.apply(loaded, is_requested);
            assert_eq!(count.get(), expected);
        }
    }
}

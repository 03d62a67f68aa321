//! Files, their total, and claims of a folder.

use std::time::SystemTime;

use super::*;
use crate::value_cache::claim::LEASE;

fn write(folder: &Folder, name: &str, body: &'static str) -> Result<(), NotCachedReason> {
    folder.write(&Digest::new(name.as_bytes()), &[Bytes::from(body)])
}

fn read(folder: &Folder, name: &str) -> Option<Bytes> {
    folder.read(&Digest::new(name.as_bytes()), 1 << 20)
}

#[test]
fn a_changed_file_is_not_read() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::open(path.path().join("cache"), 1 << 20).unwrap();
    assert_eq!(read(&folder, "a"), None);
    write(&folder, "a", "value").unwrap();
    assert_eq!(read(&folder, "a").as_deref(), Some(&b"value"[..]));
    let file = folder.file(&Digest::new(b"a"));
    let whole = fs::read(&file).unwrap();
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        assert_eq!(read(&folder, "a"), None, "cut to {length}");
    }
    for byte in 0..whole.len() {
        let mut broken = whole.clone();
        broken[byte] ^= 1;
        fs::write(&file, broken).unwrap();
        assert_eq!(read(&folder, "a"), None, "byte {byte} has changed");
    }
    assert!(folder.contains(&Digest::new(b"a")));
    write(&folder, "a", "value").unwrap();
    assert_eq!(read(&folder, "a").as_deref(), Some(&b"value"[..]));
    let drafts = fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(drafts, 1, "no temporary file is left");
}

#[test]
fn the_total_is_bounded_over_readers() {
    let path = tempfile::tempdir().unwrap();
    let open = || Folder::open(path.path().to_owned(), 100).unwrap();
    let folder = open();
    write(&folder, "a", "12345678").unwrap();
    write(&folder, "b", "12345678").unwrap();
    assert_eq!(write(&folder, "c", "12345678"), Err(NotCachedReason::FolderFull));
    assert_eq!(
        write(&folder, "d", ""),
        Err(NotCachedReason::FolderFull),
        "the folder stays closed"
    );
    assert!(read(&folder, "b").is_some() && read(&folder, "c").is_none());
    let again = open();
    assert_eq!(write(&again, "d", "12345678"), Err(NotCachedReason::FolderFull));
    assert!(read(&again, "a").is_some() && read(&again, "d").is_none());
}

#[test]
fn a_failed_write_has_a_reason() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::open(path.path().to_owned(), 1 << 20).unwrap();
    // A file has the name of the subfolder.
    fs::write(path.path().join(&Digest::new(b"a").to_string()[..2]), b"").unwrap();
    assert_eq!(write(&folder, "a", "value"), Err(NotCachedReason::Unwritable));
    assert_eq!(read(&folder, "a"), None);
    assert_eq!(folder.closed_reason.get(), Some(&NotCachedReason::Unwritable));
}

#[test]
fn the_total_is_bounded_over_processes_that_write_at_once() {
    let path = tempfile::tempdir().unwrap();
    let written: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|process| {
                let folder = Folder::open(path.path().to_owned(), 40 * 20).unwrap();
                scope.spawn(move || {
                    let names = (0..20).map(|name| format!("{process} {name}"));
                    names
                        .filter(|name| write(&folder, name, "12345678").is_ok())
                        .count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(written, 20, "40 bytes each");
}

#[test]
fn a_value_that_is_written_again_counts_once() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::open(path.path().to_owned(), 100).unwrap();
    for _ in 0..9 {
        write(&folder, "a", "12345678").unwrap();
    }
    write(&folder, "b", "12345678").unwrap();
    assert_eq!(write(&folder, "c", "12345678"), Err(NotCachedReason::FolderFull));
}

/// Threads with folders of their own behave as processes.
#[test]
fn one_process_holds_a_claim_and_the_others_see_it() {
    let path = tempfile::tempdir().unwrap();
    let open = || Folder::open(path.path().to_owned(), 1 << 20).unwrap();
    let (folder, other, name) = (open(), open(), Digest::new(b"a"));
    let is_held = |folder: &Folder| folder.is_held(&name, &mut KnownHolders::default());
    assert!(!is_held(&other));
    let held = folder.claim(&name).unwrap().unwrap();
    assert!(other.claim(&name).unwrap().is_none() && is_held(&other));
    write(&folder, "a", "value").unwrap();
    assert!(!is_held(&other), "the value is there before the claim is gone");
    drop(held);
    assert!(other.claim(&name).unwrap().is_some());
}

#[test]
fn one_process_takes_over_a_stale_claim() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::open(path.path().to_owned(), 1 << 20).unwrap();
    let name = Digest::new(b"a");
    let file = folder.claim_file(&name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    for _ in 0..20 {
        fs::write(&file, b"").unwrap();
        let opened = File::options().write(true).open(&file).unwrap();
        opened.set_modified(SystemTime::now() - LEASE).unwrap();
        assert!(!folder.is_held(&name, &mut KnownHolders::default()));
        let claims: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| folder.claim(&name).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(claims.iter().flatten().count(), 1);
    }
    assert!(!file.exists());
}

#[test]
fn a_full_folder_has_no_claims() {
    let path = tempfile::tempdir().unwrap();
    let folder = Folder::open(path.path().to_owned(), 10).unwrap();
    assert_eq!(write(&folder, "a", "value"), Err(NotCachedReason::FolderFull));
    assert!(folder.claim(&Digest::new(b"b")).is_err());
}

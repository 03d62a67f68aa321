//! Who holds a claim, and for how long.

use std::{
    process::{Command, Stdio},
    time::SystemTime,
};

use super::*;

fn state(file: &Path) -> ClaimState {
    ClaimState::of(file, &mut KnownHolders::default())
}

fn write(file: &Path, holder: Holder) {
    fs::write(file, format!("{holder}\n")).unwrap();
}

/// Changes when a claim was made.
fn set_age(file: &Path, age: Duration) {
    let opened = File::options().write(true).open(file).unwrap();
    opened.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn one_of_many_holds_a_claim() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ab/c.claim");
    assert_eq!(state(&file), ClaimState::Free);
    for _ in 0..20 {
        let claims: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Claim::create(&file))).collect();
            let results = threads.into_iter().map(|thread| thread.join().unwrap().unwrap());
            results.collect()
        });
        assert_eq!(claims.iter().flatten().count(), 1);
        assert_eq!(state(&file), ClaimState::Held);
        drop(claims);
        assert_eq!(state(&file), ClaimState::Free);
    }
}

#[test]
fn the_claim_of_an_ended_process_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("claim");
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let holder = Holder {
        pid: child.id(),
        start_ticks: start_ticks(child.id()).unwrap(),
        ..Holder::current()
    };
    write(&file, holder);
    assert_eq!(state(&file), ClaimState::Held);
    child.kill().unwrap();
    // It is a zombie until `wait`.
    let deadline = Instant::now() + Duration::from_secs(10);
    while state(&file) == ClaimState::Held && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(state(&file), ClaimState::Stale, "a zombie");
    child.wait().unwrap();
    assert_eq!(state(&file), ClaimState::Stale);
    let reused = Holder {
        start_ticks: Holder::current().start_ticks - 1,
        ..Holder::current()
    };
    write(&file, reused);
    assert_eq!(
        state(&file),
        ClaimState::Stale,
        "the pid belongs to another process"
    );
}

#[test]
fn the_lease_alone_bounds_the_claim_of_an_invisible_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("claim");
    let current = Holder::current();
    let other_namespace = Holder {
        namespace: current.namespace + 1,
        start_ticks: 1,
        ..current
    };
    let unknown_start = Holder {
        start_ticks: 0,
        ..current
    };
    for text in [
        format!("{other_namespace}\n"),
        format!("{unknown_start}\n"),
        format!("{current}\n"),
        // While it is written.
        format!("{current}"),
        String::new(),
        "a b c\n".to_owned(),
        "1 2\n".to_owned(),
        "\u{fffd}".repeat(100),
    ] {
        fs::write(&file, &text).unwrap();
        assert_eq!(state(&file), ClaimState::Held, "{text:?}");
        set_age(&file, LEASE);
        assert_eq!(state(&file), ClaimState::Stale, "{text:?}");
    }
}

#[test]
fn a_claim_survives_clocks_that_are_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("claim");
    let claim = Claim::create(&file).unwrap().unwrap();
    let opened = File::options().write(true).open(&file).unwrap();
    opened.set_modified(SystemTime::now() + LEASE).unwrap();
    assert_eq!(state(&file), ClaimState::Held);
    drop(claim);
    assert_eq!(state(&file), ClaimState::Free);
}

#[test]
fn an_expired_claim_leaves_that_of_its_successor() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("claim");
    let expired = || Claim {
        file: file.clone(),
        since: Instant::now().checked_sub(LEASE).unwrap(),
    };
    let successor = Claim::create(&file).unwrap().unwrap();
    drop(expired());
    assert_eq!(state(&file), ClaimState::Held);
    drop(successor);
    write(&file, Holder::current());
    set_age(&file, LEASE);
    drop(expired());
    assert_eq!(state(&file), ClaimState::Free, "its own file is removed");
}

#[test]
fn a_holder_is_read_back() {
    let holder = Holder::current();
    assert!(holder.start_ticks > 0 && holder.namespace > 0 && holder.is_alive());
    assert_eq!(format!("{holder}\n").parse(), Ok(holder));
    for text in [
        "",
        "\n",
        "1 2\n",
        "1 2 3",
        "1 2 3 4\n",
        "-1 2 3\n",
        "4294967296 2 3\n",
    ] {
        assert_eq!(text.parse::<Holder>(), Err(()), "{text:?}");
    }
}

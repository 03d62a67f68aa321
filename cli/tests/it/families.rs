//! A gateway whose steps have other versions than those of this host.

use pushdown_testkit::{RelayAction, World, faulty_relay};

use super::cli::pushdown;

#[test]
fn a_reader_says_once_which_end_is_older() {
    let world = World::with_photos(6).unwrap();
    let relay = faulty_relay(world.gateway.listen(), |_| RelayAction::OlderFamily("resample")).unwrap();
    let output = pushdown(&[
        "read",
        "s3://photos/",
        "-p",
        "decode | resize(8, 8)",
        "--batch-size",
        "2",
    ])
    .env("PUSHDOWN_ENDPOINT", format!("http://{}", relay.address()))
    .output()
    .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text =
        "the gateway computes steps of `resample` with version 3, this host with 4: the gateway is older";
    assert_eq!(stderr.matches(text).count(), 1, "{stderr}");
}

//! The help text.

use super::world::{program, text};

#[test]
fn help() {
    let output = program(&["--help"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

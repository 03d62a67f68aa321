//! Objects that are no samples, such as `.DS_Store`.

use pushdown_testkit::World;

use super::cli::run_command;

#[test]
fn hidden_objects_are_left_out_of_samples_and_listed_by_ls() {
    let world = World::with_photos(2).unwrap();
    for (key, body) in [("train/.DS_Store", "s"), ("Thumbs.db", "t"), ("empty/", "")] {
        world.put(key, body.as_bytes()).unwrap();
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let listed = run_command(&world, &["ls", "s3://photos/"]);
    for key in ["train/.DS_Store", "Thumbs.db", "empty/"] {
        assert!(text(&listed.stdout).contains(key), "{listed:?}");
    }
    assert!(text(&listed.stderr).is_empty(), "{listed:?}");
    let read = |more: &[&str]| {
        let arguments = ["read", "s3://photos/", "-p", "decode | resize(8, 8)", "--json"];
        run_command(&world, &[&arguments, more].concat())
    };
    let samples = read(&[]);
    assert!(samples.status.success(), "{samples:?}");
    let line = "s3://photos/: left out 3 hidden objects, such as `Thumbs.db`: `--include-hidden`, in code \
                `include_hidden`, keeps them";
    let warnings = text(&samples.stderr);
    assert_eq!(
        warnings.lines().filter(|text| text.contains(line)).count(),
        1,
        "{warnings}"
    );
    let all = read(&["--include-hidden"]);
    assert_eq!(all.status.code(), Some(1), "{all:?}");
    assert!(text(&all.stderr).contains("train/.DS_Store: "), "{all:?}");
    assert!(!text(&all.stderr).contains("left out"), "{all:?}");
}

//! The command line on tables: remote and local scans, and `schema`.

use std::process::Output;

use pushdown::{Context, Limits, Pipeline, Sample, Table, wire};
use pushdown_testkit::{Objects, Parquet, World};

use super::cli::pushdown;

const PIPELINE: &str = "select(columns=[text, n], where='n >= 700')";
const OBJECT: &str = "s3://photos/t.parquet";

fn world() -> World {
    let object = Parquet {
        rows: 20_000,
        noise: 3,
        row_group: 5000,
    };
    let objects = [
        ("t.parquet".to_owned(), object.write().unwrap()),
        ("none.txt".to_owned(), b"text".to_vec()),
    ];
    World::with_objects(Objects::from(objects)).unwrap()
}

fn run_command(world: &World, arguments: &[&str]) -> Output {
    pushdown(arguments)
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .output()
        .unwrap()
}

fn shown(output: &Output) -> String {
    format!(
        "exit {}: {}{}",
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn table(bytes: Vec<u8>) -> Table {
    let content_type = "application/vnd.apache.arrow.stream";
    let header = |name: &str| (name == wire::header::KIND).then_some("table");
    match wire::decode(content_type, header, bytes.into(), &Limits::default()).unwrap() {
        Sample::Table(table) => table,
        other => panic!("{other:?}"),
    }
}

/// With `--split smallest` the footer decides: rows of a narrow range have fewer bytes than their columns, all rows have more.
#[test]
fn get_returns_the_same_rows_for_every_split() {
    let world = world();
    let pipeline = Pipeline::parse(PIPELINE).unwrap();
    let object = Sample::Bytes(world.objects["t.parquet"].clone().into());
    let Sample::Table(expected) = pipeline.run(0..1, object, &Context::new(b"")).unwrap() else {
        panic!("no table")
    };
    let file = world.folder().join("rows.arrow");
    let file = file.to_str().unwrap();
    let stored = format!("http://{}", world.gateway.store().unwrap());
    for extra_arguments in [
        &[][..],
        &["--split", "1"],
        &["--split", "smallest"],
        &["--split", "0"],
        &["--plain"],
        &["--plain", "--endpoint-url", &stored],
    ] {
        let arguments = ["get", OBJECT, "--pipeline", PIPELINE, "-o", file];
        let output = run_command(&world, &[&arguments, extra_arguments].concat());
        assert!(output.status.success(), "{extra_arguments:?}: {}", shown(&output));
        assert_eq!(
            table(std::fs::read(file).unwrap()),
            expected,
            "{extra_arguments:?}"
        );
    }
    let arguments = ["get", OBJECT, "--pipeline", PIPELINE, "--format", "arrow"];
    assert_eq!(table(run_command(&world, &arguments).stdout), expected);
}

#[test]
fn many_objects_are_one_table_for_every_split() {
    let part = |rows: &str| format!("n,text\n{rows}").into_bytes();
    let objects = [
        ("parts/a.csv".to_owned(), part("1,one\n2,two\n")),
        ("parts/b.csv".to_owned(), part("3,three\n")),
        ("parts/c/d.csv".to_owned(), part("4,four\n")),
        ("mixed/a.csv".to_owned(), part("1,one\n")),
        ("mixed/b.csv".to_owned(), b"n,more\n2,x\n".to_vec()),
    ];
    let world = World::with_objects(Objects::from(objects)).unwrap();
    let get = |prefix: &str, extra_arguments: &[&str]| {
        let prefix = format!("s3://photos/{prefix}");
        let arguments = [
            "get",
            &prefix,
            "--pipeline",
            "select(where='n > 1')",
            "--format",
            "csv",
        ];
        shown(&run_command(&world, &[&arguments[..], extra_arguments].concat()))
    };
    for route_flags in [&[][..], &["--plain"], &["--split", "0"], &["--split", "smallest"]] {
        let with = |extra_arguments: &[&'static str]| [route_flags, extra_arguments].concat();
        assert_eq!(
            get("parts/", route_flags),
            "exit 0: n,text\n2,two\n3,three\n4,four\n",
            "{route_flags:?}"
        );
        assert_eq!(
            get("parts/", &with(&["--key-column"])),
            "exit 0: key,n,text\nparts/a.csv,2,two\nparts/b.csv,3,three\nparts/c/d.csv,4,four\n",
            "{route_flags:?}"
        );
        assert_eq!(
            get("mixed/", &with(&["--schema", "union"])),
            "exit 0: n,text,more\n2,,x\n",
            "{route_flags:?}"
        );
        let refused = get("mixed/", route_flags);
        assert!(
            refused.starts_with("exit 1: ") && refused.contains("those of `mixed/a.csv`"),
            "{refused}"
        );
    }
    insta::assert_snapshot!([get("none/", &[]), get("mixed/", &[]), get("mixed/", &["--plain"])].join("\n"));
}

#[test]
fn a_local_scan_reads_only_the_needed_bytes() {
    let world = world();
    let before = world
        .gateway
        .metric("pushdown_store_received_bytes_total")
        .unwrap();
    let pipeline = "select(columns=[n], where='n < 5000')";
    let output = run_command(
        &world,
        &[
            "get",
            OBJECT,
            "--pipeline",
            pipeline,
            "--split",
            "0",
            "--format",
            "arrow",
        ],
    );
    assert_eq!(table(output.stdout).rows(), 5000);
    let read = world
        .gateway
        .metric("pushdown_store_received_bytes_total")
        .unwrap()
        - before;
    // One column of one row group, and the end of the object.
    assert!(read < 40_000.0 + 70_000.0, "{read}");
}

#[test]
fn a_failed_get_leaves_no_file() {
    let world = world();
    let file = world.folder().join("rows.arrow");
    let path = file.to_str().unwrap();
    let get = |object: &str, pipeline: &str, extra_arguments: &[&str]| {
        let arguments = ["get", object, "--pipeline", pipeline, "-o", path];
        let output = run_command(&world, &[&arguments, extra_arguments].concat());
        assert!(!file.exists());
        shown(&output)
    };
    insta::assert_snapshot!(
        [
            get("s3://photos/missing.parquet", PIPELINE, &[]),
            get("s3://photos/none.txt", PIPELINE, &[]),
            get("s3://photos/none.txt", PIPELINE, &["--split", "0"]),
            get(OBJECT, "select(columns=[txt])", &[]),
            get(OBJECT, "select(columns=[txt])", &["--split", "0"]),
            get(OBJECT, "select(columns=[n)", &[]),
            get(OBJECT, PIPELINE, &["--accept", "npy"]),
            get("s3://photos/none.txt", "decode", &["--format", "csv"]),
        ]
        .join("")
    );
}

/// A table without rows is an empty JSON lines file.
#[test]
fn no_rows_are_an_empty_file() {
    let world = world();
    let file = world.folder().join("rows.ndjson");
    for split in ["full", "0"] {
        std::fs::write(&file, "yesterday's rows").unwrap();
        let arguments = [
            "get",
            OBJECT,
            "--pipeline",
            "select(where='n < 0')",
            "--split",
            split,
        ];
        let output = run_command(
            &world,
            &[&arguments[..], &["-o", file.to_str().unwrap()]].concat(),
        );
        assert!(output.status.success(), "{}", shown(&output));
        assert_eq!(std::fs::read(&file).unwrap(), b"", "{split}");
    }
}

#[test]
fn schema_describes_a_table() {
    let world = world();
    let stored = world.objects["t.parquet"].len().to_string();
    let text = shown(&run_command(&world, &["schema", OBJECT]));
    let filters = [(stored.as_str(), "[stored]"), (r"\([\d.]+ [KM]iB\)", "([size])")];
    insta::with_settings!({ filters => filters }, {
        insta::assert_snapshot!(
            [
                text,
                shown(&run_command(&world, &["schema", "s3://photos/none.txt"])),
                shown(&run_command(&world, &["schema", "s3://photos/missing"])),
                shown(&run_command(&world, &["schema", "s3://photos"])),
            ]
            .join("")
        );
    });
    let output = run_command(&world, &["schema", OBJECT, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["rows"], 20_000);
    assert_eq!(json["row_groups"], 4);
    assert_eq!(json["stored_bytes"], world.objects["t.parquet"].len());
    assert_eq!(json["columns"][1]["type"], "Utf8");
}

#[test]
fn check_shows_that_the_result_is_a_table() {
    let shown = |arguments: &[&str]| shown(&pushdown(arguments).output().unwrap());
    insta::assert_snapshot!(
        [
            shown(&["check", PIPELINE]),
            shown(&["check", "select(columns=[n]) | decode"]),
            shown(&["check", "sql('select n fro object')"]),
        ]
        .join("")
    );
}

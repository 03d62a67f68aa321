//! `pushdown get -o FILE`: the format of the file, selected by its extension.

use std::{fs, process::Output};

use pushdown_testkit::{Objects, World, photos};

use super::cli::pushdown;

const PIXELS: &str = "decode | resize(32, 24)";
const OBJECT: &str = "s3://photos/jpeg_420.jpg";

fn world() -> World {
    let mut objects: Objects = photos().unwrap();
    objects.retain(|key, _| key == "jpeg_420.jpg");
    assert_eq!(objects.len(), 1);
    objects.insert("t.csv".to_owned(), b"n,text\n1,a\n2,b\n".to_vec());
    World::with_objects(objects).unwrap()
}

/// Runs the command and returns the exit code, stderr, and the contents of the file if it exists.
fn get(endpoint: &str, world: &World, arguments: &[&str], name: &str) -> (i32, String, Option<Vec<u8>>) {
    let file = world.folder().join(name);
    drop(fs::remove_file(&file));
    let Output { status, stderr, .. } = pushdown(arguments)
        .args(["-o", file.to_str().unwrap()])
        .env("PUSHDOWN_ENDPOINT", endpoint)
        .output()
        .unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    let folder = format!("{}/", world.folder().display());
    (
        status.code().unwrap(),
        stderr.replace(&folder, ""),
        fs::read(&file).ok(),
    )
}

/// Flags that select where the steps run.
const MODES: [&[&str]; 2] = [&[], &["--plain"]];

#[test]
fn a_known_extension_selects_the_format() {
    let world = world();
    let endpoint = world.endpoint();
    let jpeg = format!("{PIXELS} | encode(jpeg)");
    let png = format!("{PIXELS} | encode(png)");
    let webp = format!("{PIXELS} | encode(webp)");
    for mode_flags in MODES {
        for (name, pipeline, magic) in [
            ("x.npy", PIXELS, &b"\x93NUMPY"[..]),
            ("x.arrow", PIXELS, b"\xff\xff\xff\xff"),
            ("x.safetensors", PIXELS, b"\0\0\0\0\0\0\0\0{\"__metadata__\""),
            ("x.jpg", &jpeg, b"\xff\xd8\xff"),
            ("x.JPEG", &jpeg, b"\xff\xd8\xff"),
            ("x.png", &png, b"\x89PNG"),
            ("x.webp", &webp, b"RIFF"),
        ] {
            let arguments = [&["get", OBJECT, "-p", pipeline], mode_flags].concat();
            let (code, stderr, written) = get(&endpoint, &world, &arguments, name);
            assert_eq!((code, stderr.as_str()), (0, ""), "{name} {mode_flags:?}");
            let written = written.unwrap();
            // The length of the header depends on the numbers in it.
            let skipped = if name == "x.safetensors" { 8 } else { 0 };
            assert_eq!(
                written[skipped..magic.len()],
                magic[skipped..],
                "{name} {mode_flags:?}"
            );
        }
        let arguments = [&["get", OBJECT, "-p", PIXELS], mode_flags].concat();
        let (_, _, raw) = get(&endpoint, &world, &arguments, "x.raw");
        assert_eq!(raw.unwrap().len(), 32 * 24 * 3);
    }
}

/// The endpoint has no listener, so the refusal precedes any request.
#[test]
fn a_wrong_extension_is_refused_before_any_request() {
    let world = world();
    let unused_endpoint = "http://127.0.0.1:9";
    let refused = |pipeline: &str, extra_arguments: &[&str], name: &str| {
        let mut errors = Vec::new();
        for mode_flags in MODES {
            let arguments = [&["get", OBJECT, "-p", pipeline], extra_arguments, mode_flags].concat();
            let (code, text, written) = get(unused_endpoint, &world, &arguments, name);
            assert_eq!((code, written), (2, None), "{text}");
            errors.push(text);
        }
        assert_eq!(errors[0], errors[1]);
        errors.remove(0)
    };
    assert_eq!(
        refused("decode | resize(224, 224)", &[], "x.jpg"),
        "error: -o x.jpg: expected .npy, .arrow or .safetensors for a u8 array [224, 224, 3], found .jpg; append encode(jpeg) \
         to the pipeline\n"
    );
    insta::assert_snapshot!(
        [
            refused("decode", &[], "x.png"),
            refused("decode | resize(8, 8) | to_float", &[], "x.webp"),
            refused("decode | resize(8, 8) | to_float | cast(bf16)", &[], "x.npy"),
            refused("decode | resize(8, 8)", &[], "x.parquet"),
            refused("decode | encode(png)", &[], "x.jpg"),
            refused("decode | encode(jpeg)", &[], "x.npy"),
            refused("decode | resize(8, 8) | encode(jpeg)", &["--split", "2"], "x.jpg"),
            refused("decode | resize(8, 8)", &["--accept", "npy"], "x.safetensors"),
            refused("select(columns=[n])", &[], "x.npy"),
            refused("select(columns=[n])", &[], "x.jpg"),
            refused("select(columns=[n])", &["--format", "csv"], "x.parquet"),
            refused("select(columns=[n])", &["--accept", "arrow"], "x.csv"),
        ]
        .concat()
    );
}

#[test]
fn a_file_with_an_unknown_extension_is_written_with_a_note() {
    let world = world();
    let endpoint = world.endpoint();
    for mode_flags in MODES {
        for (name, pipeline, format_name, magic) in [
            ("x.dat", PIXELS, "npy", &b"\x93NUMPY"[..]),
            ("x", PIXELS, "npy", b"\x93NUMPY"),
            ("x.bin", "decode | resize(8, 8) | encode(png)", "png", b"\x89PNG"),
        ] {
            let arguments = [&["get", OBJECT, "-p", pipeline], mode_flags].concat();
            let (code, stderr, written) = get(&endpoint, &world, &arguments, name);
            let expected =
                format!("note: {name} is written as {format_name}: its name has no known extension\n");
            assert_eq!((code, stderr), (0, expected), "{mode_flags:?}");
            assert!(written.unwrap().starts_with(magic), "{name}");
        }
        let arguments = [
            &["get", "s3://photos/t.csv", "-p", "select(columns=[n])"],
            mode_flags,
        ]
        .concat();
        let (code, stderr, written) = get(&endpoint, &world, &arguments, "x.table");
        let expected = "note: x.table is written as arrow: its name has no known extension\n";
        assert_eq!((code, stderr.as_str()), (0, expected), "{mode_flags:?}");
        assert!(written.unwrap().starts_with(b"\xff\xff\xff\xff"));
        let explicit_format = [&["get", OBJECT, "-p", PIXELS, "--accept", "npy"], mode_flags].concat();
        let (code, stderr, _) = get(&endpoint, &world, &explicit_format, "x.dat");
        assert_eq!(
            (code, stderr.as_str()),
            (0, ""),
            "no note if --accept names the format"
        );
    }
}

#[test]
fn the_stored_object_is_written_under_any_name_with_a_note() {
    let world = world();
    let endpoint = world.endpoint();
    for mode_flags in MODES {
        for name in ["x.jpg", "x.npy", "x"] {
            let arguments = [&["get", OBJECT, "-p", PIXELS, "--split", "0"], mode_flags].concat();
            let (code, stderr, written) = get(&endpoint, &world, &arguments, name);
            let expected = format!("note: {name} is the object as stored (stage 0)\n");
            assert_eq!((code, stderr), (0, expected), "{mode_flags:?}");
            assert_eq!(written.unwrap(), world.objects["jpeg_420.jpg"]);
        }
    }
}

/// The smallest stage depends on the object, and the format on the stage. If the extension does not match, no file is written.
#[test]
fn the_smallest_stage_needs_a_matching_extension() {
    let world = world();
    let endpoint = world.endpoint();
    // 8 x 8 pixels have fewer bytes than the object, 1000 x 1000 pixels have more.
    for (pipeline, name, expected) in [
        ("decode | resize(8, 8)", "x.npy", Ok("")),
        ("decode | resize(8, 8)", "x.safetensors", Ok("")),
        (
            "decode | resize(8, 8)",
            "x.jpg",
            Err(
                "error: -o x.jpg: expected .npy, .arrow or .safetensors for a u8 array [8, 8, 3], found .jpg; append \
                 encode(jpeg) to the pipeline\n",
            ),
        ),
        (
            "decode | resize(1000, 1000)",
            "x.npy",
            Ok("note: x.npy is the object as stored (stage 0)\n"),
        ),
    ] {
        for mode_flags in MODES {
            let arguments = [
                &["get", OBJECT, "-p", pipeline, "--split", "smallest"],
                mode_flags,
            ]
            .concat();
            let (code, stderr, written) = get(&endpoint, &world, &arguments, name);
            let (expected_code, text) = match expected {
                Ok(text) => (0, text),
                Err(text) => (2, text),
            };
            assert_eq!(
                (code, stderr.as_str()),
                (expected_code, text),
                "{pipeline} {mode_flags:?}"
            );
            assert_eq!(written.is_some(), expected.is_ok());
        }
    }
}

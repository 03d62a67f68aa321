//! `pushdown get -o FILE`: the form of what is written, by the file's ending.

use std::{fs, process::Output};

use super::{
    cli::pushdown,
    world::{Objects, World, photos},
};

const PIXELS: &str = "decode | resize(32, 24)";
const OBJECT: &str = "s3://photos/jpeg_420.jpg";

fn world() -> World {
    let mut objects: Objects = photos();
    objects.retain(|key, _| key == "jpeg_420.jpg");
    assert_eq!(objects.len(), 1);
    objects.insert("t.csv".to_owned(), b"n,text\n1,a\n2,b\n".to_vec());
    World::with(objects)
}

/// The exit code, what stderr says, and what is in the file, if it is there.
fn get(endpoint: &str, world: &World, arguments: &[&str], name: &str) -> (i32, String, Option<Vec<u8>>) {
    let file = world.folder().join(name);
    drop(fs::remove_file(&file));
    let Output { status, stderr, .. } = pushdown(arguments)
        .args(["-o", file.to_str().unwrap()])
        .env("PUSHDOWN_ENDPOINT", endpoint)
        .output()
        .unwrap();
    let said = String::from_utf8(stderr).unwrap();
    let folder = format!("{}/", world.folder().display());
    (
        status.code().unwrap(),
        said.replace(&folder, ""),
        fs::read(&file).ok(),
    )
}

/// Where the steps may run.
const WAYS: [&[&str]; 2] = [&[], &["--plain"]];

#[test]
fn a_known_ending_decides_the_form() {
    let world = world();
    let endpoint = world.endpoint();
    let jpeg = format!("{PIXELS} | encode(jpeg)");
    let png = format!("{PIXELS} | encode(png)");
    let webp = format!("{PIXELS} | encode(webp)");
    for way in WAYS {
        for (name, pipeline, magic) in [
            ("x.npy", PIXELS, &b"\x93NUMPY"[..]),
            ("x.arrow", PIXELS, b"\xff\xff\xff\xff"),
            ("x.safetensors", PIXELS, b"\0\0\0\0\0\0\0\0{\"__metadata__\""),
            ("x.jpg", &jpeg, b"\xff\xd8\xff"),
            ("x.JPEG", &jpeg, b"\xff\xd8\xff"),
            ("x.png", &png, b"\x89PNG"),
            ("x.webp", &webp, b"RIFF"),
        ] {
            let arguments = [&["get", OBJECT, "-p", pipeline], way].concat();
            let (code, said, written) = get(&endpoint, &world, &arguments, name);
            assert_eq!((code, said.as_str()), (0, ""), "{name} {way:?}");
            let written = written.unwrap();
            // The head's length depends on the numbers in it.
            let from = if name == "x.safetensors" { 8 } else { 0 };
            assert_eq!(written[from..magic.len()], magic[from..], "{name} {way:?}");
        }
        let arguments = [&["get", OBJECT, "-p", PIXELS], way].concat();
        let (_, _, raw) = get(&endpoint, &world, &arguments, "x.raw");
        assert_eq!(raw.unwrap().len(), 32 * 24 * 3);
    }
}

/// Nobody listens at the endpoint: what is refused is refused before anything is asked for.
#[test]
fn a_wrong_ending_is_refused_before_anything_is_fetched() {
    let world = world();
    let nobody = "http://127.0.0.1:9";
    let refused = |pipeline: &str, more: &[&str], name: &str| {
        let mut said = Vec::new();
        for way in WAYS {
            let arguments = [&["get", OBJECT, "-p", pipeline], more, way].concat();
            let (code, text, written) = get(nobody, &world, &arguments, name);
            assert_eq!((code, written), (2, None), "{text}");
            said.push(text);
        }
        assert_eq!(said[0], said[1]);
        said.remove(0)
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
fn an_unknown_ending_is_written_and_said() {
    let world = world();
    let endpoint = world.endpoint();
    for way in WAYS {
        for (name, pipeline, form, magic) in [
            ("x.dat", PIXELS, "npy", &b"\x93NUMPY"[..]),
            ("x", PIXELS, "npy", b"\x93NUMPY"),
            ("x.bin", "decode | resize(8, 8) | encode(png)", "png", b"\x89PNG"),
        ] {
            let arguments = [&["get", OBJECT, "-p", pipeline], way].concat();
            let (code, said, written) = get(&endpoint, &world, &arguments, name);
            let expected =
                format!("note: {name} is written as {form}: its name has no ending that is known\n");
            assert_eq!((code, said), (0, expected), "{way:?}");
            assert!(written.unwrap().starts_with(magic), "{name}");
        }
        let arguments = [&["get", "s3://photos/t.csv", "-p", "select(columns=[n])"], way].concat();
        let (code, said, written) = get(&endpoint, &world, &arguments, "x.table");
        let expected = "note: x.table is written as arrow: its name has no ending that is known\n";
        assert_eq!((code, said.as_str()), (0, expected), "{way:?}");
        assert!(written.unwrap().starts_with(b"\xff\xff\xff\xff"));
        let asked = [&["get", OBJECT, "-p", PIXELS, "--accept", "npy"], way].concat();
        let (code, said, _) = get(&endpoint, &world, &asked, "x.dat");
        assert_eq!((code, said.as_str()), (0, ""), "who says how it is written knows");
    }
}

#[test]
fn the_object_itself_is_written_under_any_name_and_said() {
    let world = world();
    let endpoint = world.endpoint();
    for way in WAYS {
        for name in ["x.jpg", "x.npy", "x"] {
            let arguments = [&["get", OBJECT, "-p", PIXELS, "--split", "0"], way].concat();
            let (code, said, written) = get(&endpoint, &world, &arguments, name);
            let expected = format!("note: {name} is the object as it is stored (stage 0)\n");
            assert_eq!((code, said), (0, expected), "{way:?}");
            assert_eq!(written.unwrap(), world.objects["jpeg_420.jpg"]);
        }
    }
}

/// Where to stop follows from the object: the form follows from that, or there is no file.
#[test]
fn the_smallest_stage_is_written_under_its_own_name_only() {
    let world = world();
    let endpoint = world.endpoint();
    // Eight by eight pixels are fewer bytes than the object, a thousand by a thousand are more.
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
            Ok("note: x.npy is the object as it is stored (stage 0)\n"),
        ),
    ] {
        for way in WAYS {
            let arguments = [&["get", OBJECT, "-p", pipeline, "--split", "smallest"], way].concat();
            let (code, said, written) = get(&endpoint, &world, &arguments, name);
            let (expected_code, text) = match expected {
                Ok(text) => (0, text),
                Err(text) => (2, text),
            };
            assert_eq!((code, said.as_str()), (expected_code, text), "{pipeline} {way:?}");
            assert_eq!(written.is_some(), expected.is_ok());
        }
    }
}

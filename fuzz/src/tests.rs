//! Runs the checks on intact files, and on files with changed, removed, duplicated and truncated bytes.

use std::{env, fs, path::Path};

use super::*;

/// Number of mutations of each file and query: like the number of cases of properties, it is larger in `make test-full`.
fn mutations() -> u64 {
    let cases = env::var("PROPTEST_CASES").map_or(256, |cases| cases.parse().expect("a number of cases"));
    cases / 6
}

/// The files in `folders` of the test kit with one of these suffixes. Large files are skipped: each is read thousands of times.
fn seeds(folders: &[&str], suffixes: &[&str]) -> Vec<Vec<u8>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures");
    let mut files: Vec<_> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(fixtures.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let selected = files.into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        suffixes.iter().any(|suffix| name.ends_with(suffix))
    });
    let seeds: Vec<_> = selected
        .map(|path| fs::read(path).unwrap())
        .filter(|file| file.len() < 60_000)
        .collect();
    assert!(seeds.len() >= 2, "{}", seeds.len());
    seeds
}

/// Reproducible pseudorandom numbers (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % bound.max(1)
    }
}

fn mutated(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..=random.below(4) {
        // Half of the changes are at the end, where Parquet has its footer.
        let start = if random.below(2) == 0 {
            file.len().saturating_sub(1500)
        } else {
            0
        };
        let index = start + random.below(file.len() - start);
        match random.below(8) {
            0 => file.truncate(index),
            1 => drop(file.drain(index..(index + 1 + random.below(20)).min(file.len()))),
            2 => {
                let piece = file[index..(index + 1 + random.below(200)).min(file.len())].to_vec();
                file.splice(index..index, piece);
            }
            3 if !file.is_empty() => file[index] ^= 1 << random.below(8),
            _ if !file.is_empty() => {
                file[index] = [0, 0xff, 0x7f, 0x80, b'"', b'\n', 0x19, 0xfc][random.below(8)];
            }
            _ => {}
        }
    }
    file
}

fn check_tables(target: fn(&[u8]), suffixes: &[&str], queries: usize) {
    for (index, seed) in seeds(&["tables"], suffixes).iter().enumerate() {
        for query in 0..queries {
            let query = u8::try_from(query).unwrap();
            target(&[&[query][..], seed].concat());
            for mutation in 0..mutations() {
                let mut random = Random(((index as u64) << 32 | u64::from(query) << 16 | mutation) * 2 + 1);
                random.below(1);
                target(&[&[query][..], &mutated(seed, &mut random)].concat());
            }
        }
    }
}

#[test]
fn parquet_of_any_bytes() {
    check_tables(parquet, &[".parquet"], PARQUET_QUERIES.len());
}

#[test]
fn arrow_of_any_bytes() {
    check_tables(arrow, &[".arrow", ".arrows"], ARROW_QUERIES.len());
}

#[test]
fn text_of_any_bytes() {
    check_tables(
        text,
        &[".csv", ".csv.gz", ".jsonl", ".jsonl.zst", ".tsv"],
        TEXT_QUERIES.len(),
    );
}

#[test]
fn shards_of_any_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pushdown/shard/tests/golden");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().unwrap() != "json")
        .collect();
    files.sort();
    let mut members = 0;
    for (index, path) in files.iter().enumerate() {
        let seed = fs::read(path).unwrap();
        let choices: &[u8] = if path.extension().unwrap() == "tar" {
            &[0, 2]
        } else {
            &[1]
        };
        for choice in choices {
            members += shard::check(&[&[*choice, 40][..], &seed].concat());
            for mutation in 0..4 * mutations() {
                let mut random = Random(((index as u64) << 32 | u64::from(*choice) << 16 | mutation) * 2 + 1);
                random.below(1);
                let size = u8::try_from(random.below(256)).unwrap();
                members += shard::check(&[&[*choice, size][..], &mutated(&seed, &mut random)].concat());
            }
        }
    }
    assert!(members as u64 > 25 * mutations(), "{members}");
}

/// Queries of each kind; the last ones grow exponentially if no limit stops them.
const QUERIES: [&str; 5] = [
    "select * from object where n > 1 order by m limit 3",
    "select m, count(*) as c from object where text like '%a' or n in (1, 2) group by m having count(*) > 1",
    "select sum(n) over w as s, case when m is null then 1 else 2 end as c from object window w as (order by n)",
    "with a as (select n + n as n from object), b as (select n + n as n from a) select n from b where n > 5",
    "with a as (select * from object union all select * from object) select * from a union select * from a",
];

#[test]
fn sql_of_any_bytes() {
    for (index, query) in QUERIES.iter().enumerate() {
        assert!(sql::check(&[b"\0", query.as_bytes()].concat()), "{query}");
        for mutation in 0..mutations() {
            let mut random = Random(((index as u64) << 32 | mutation) * 2 + 1);
            random.below(1);
            sql::check(&[b"\0", &mutated(query.as_bytes(), &mut random)[..]].concat());
        }
    }
    let mut planned = 0;
    for seed in 0..20 * mutations() {
        let mut random = Random(seed * 2 + 1);
        random.below(1);
        let length = random.below(200);
        let choices: Vec<_> = (0..length)
            .map(|_| u8::try_from(random.below(256)).unwrap())
            .collect();
        planned += u64::from(sql::check(&[&[1][..], &choices].concat()));
    }
    assert!(planned > mutations() / 2, "{planned}");
}

#[test]
fn chunked_of_any_bytes() {
    let trailer = "x-amz-checksum-crc32:AAAAAA==\r\n";
    let seeds = [
        "0\r\n\r\n".to_owned(),
        format!("0\r\n{trailer}\r\n"),
        "5\r\nhello\r\n0\r\n\r\n".to_owned(),
        format!("5\r\nhello\r\n3\r\nabc\r\n0\r\n{trailer}\r\n"),
    ];
    for (index, seed) in seeds.iter().enumerate() {
        for mode in 0..3 {
            chunked(&[&[mode, 1, 0, 0][..], seed.as_bytes()].concat());
            for mutation in 0..10 * mutations() {
                let mut random = Random(((index as u64) << 32 | u64::from(mode) << 16 | mutation) * 2 + 1);
                random.below(1);
                let mut byte = |bound| u8::try_from(random.below(bound)).unwrap();
                let head = [mode, byte(9), byte(256), byte(2) * byte(256)];
                // Every other body is changed only after it has been signed.
                let body = if mutation % 2 == 0 {
                    mutated(seed.as_bytes(), &mut random)
                } else {
                    seed.as_bytes().to_vec()
                };
                chunked(&[&head[..], &body].concat());
            }
        }
    }
}

/// Signed heads: in a header, in the query for a virtual host, and of an upload in chunks.
const HEADS: [&str; 3] = [
    "GET /photos/a%20b//c+d?list-type=2&prefix=x+y&select&select-type=%2f
host:gateway:9900
x-amz-date:20260101T000000Z
x-amz-content-sha256:UNSIGNED-PAYLOAD
x-amz-meta-a:  b  c
x-amz-meta-a:d
authorization:AWS4-HMAC-SHA256 Credential=FUZZEDACCESSKEY1/20260101/us-east-1/s3/aws4_request, \
     SignedHeaders=host;x-amz-date;x-amz-meta-a, Signature=$",
    "GET /2024/a.jpg?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20260101T000000Z&X-Amz-Expires=600\
     &X-Amz-Credential=FUZZEDACCESSKEY1%2F20260101%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-SignedHeaders=host%3Brange\
     &X-Amz-Signature=$&versionId=1
host:photos.s3.lab.example
range:bytes=0-9
accept:*/*",
    "PUT /photos/a
host:gateway
x-amz-date:20260101T001459Z
x-amz-content-sha256:STREAMING-AWS4-HMAC-SHA256-PAYLOAD
x-amz-decoded-content-length:5
authorization:AWS4-HMAC-SHA256 Credential=FUZZEDACCESSKEY1/20260101/us-east-1/s3/aws4_request,\
     SignedHeaders=x-amz-decoded-content-length;host;x-amz-date,Signature=$",
];

#[test]
fn auth_of_any_bytes() {
    for (index, seed) in HEADS.iter().enumerate() {
        for choice in 0..4 {
            assert!(
                auth::check(&[&[choice, 0, 0][..], seed.as_bytes()].concat()),
                "{seed}"
            );
            for mutation in 0..10 * mutations() {
                let mut random = Random(((index as u64) << 32 | u64::from(choice) << 16 | mutation) * 2 + 1);
                random.below(1);
                let mut byte = |bound| u8::try_from(random.below(bound)).unwrap();
                let changes = [choice, byte(256), byte(2) * byte(256)];
                // Every other head is changed only after it has been signed.
                let head = if mutation % 2 == 0 {
                    mutated(seed.as_bytes(), &mut random)
                } else {
                    seed.as_bytes().to_vec()
                };
                auth::check(&[&changes[..], &head].concat());
            }
        }
    }
}

/// Number of image pipelines.
const PIPELINES: u64 = image::PIPELINES.len() as u64;

/// Checks each file unchanged and mutated. There are many files, so each mutation runs one pipeline only.
fn check_images(suffix: &str) {
    for (index, seed) in seeds(&["images", "photos"], &[suffix]).iter().enumerate() {
        for mutation in 0..mutations() {
            let query = u8::try_from(mutation % 256).unwrap();
            let mut random = Random(((index as u64) << 32 | mutation) * 2 + 1);
            random.below(1);
            if mutation < PIPELINES {
                image(&[&[query][..], seed].concat());
            }
            image(&[&[query][..], &mutated(seed, &mut random)].concat());
        }
    }
}

#[test]
fn png_of_any_bytes() {
    check_images(".png");
}

#[test]
fn bmp_of_any_bytes() {
    check_images(".bmp");
}

#[test]
fn gif_of_any_bytes() {
    check_images(".gif");
}

#[test]
fn tiff_of_any_bytes() {
    check_images(".tif");
}

#[test]
fn webp_of_any_bytes() {
    check_images(".webp");
}

#[test]
fn jpeg_of_any_bytes() {
    check_images(".jpg");
}

/// Each file unchanged and mutated, with many regions of which a part is sent.
#[test]
fn crop_of_any_bytes() {
    let mut cropped = 0;
    for (index, seed) in seeds(&["images", "photos"], &[".jpg"]).iter().enumerate() {
        for mutation in 0..2 * mutations() {
            let mut random = Random(((index as u64) << 32 | mutation) * 2 + 1);
            random.below(1);
            let mut choices = || u8::try_from(random.below(64)).unwrap();
            let choices = [choices(), choices(), choices(), choices(), choices(), choices()];
            cropped += u64::from(crop::check(&[&choices[..], seed].concat()));
            crop::check(&[&choices[..], &mutated(seed, &mut random)].concat());
        }
    }
    assert!(cropped > mutations(), "{cropped}");
}

//! The oracles on files that are well, and on those with bytes changed, cut out, doubled and cut off.

use std::{fs, path::Path};

use super::*;

/// Changed files of each file and query.
const ROUNDS: u64 = 40;

/// The files in `folders` of the test kit that end so, the largest left out: each is read thousands of times.
fn seeds(folders: &[&str], suffixes: &[&str]) -> Vec<Vec<u8>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures");
    let mut files: Vec<_> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(fixtures.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let chosen = files.into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        suffixes.iter().any(|suffix| name.ends_with(suffix))
    });
    let seeds: Vec<_> = chosen
        .map(|path| fs::read(path).unwrap())
        .filter(|file| file.len() < 60_000)
        .collect();
    assert!(seeds.len() >= 2, "{}", seeds.len());
    seeds
}

/// Numbers that look random, the same ones each time (xorshift, Marsaglia 2003).
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % bound.max(1)
    }
}

fn changed(file: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..=noise.below(4) {
        // Half of them at the end, where Parquet says what it is.
        let from = if noise.below(2) == 0 {
            file.len().saturating_sub(1500)
        } else {
            0
        };
        let place = from + noise.below(file.len() - from);
        match noise.below(8) {
            0 => file.truncate(place),
            1 => drop(file.drain(place..(place + 1 + noise.below(20)).min(file.len()))),
            2 => {
                let piece = file[place..(place + 1 + noise.below(200)).min(file.len())].to_vec();
                file.splice(place..place, piece);
            }
            3 if !file.is_empty() => file[place] ^= 1 << noise.below(8),
            _ if !file.is_empty() => {
                file[place] = [0, 0xff, 0x7f, 0x80, b'"', b'\n', 0x19, 0xfc][noise.below(8)];
            }
            _ => {}
        }
    }
    file
}

fn hold_all(target: fn(&[u8]), suffixes: &[&str], queries: usize) {
    for (index, seed) in seeds(&["tables"], suffixes).iter().enumerate() {
        for query in 0..queries {
            let query = u8::try_from(query).unwrap();
            target(&[&[query][..], seed].concat());
            for round in 0..ROUNDS {
                let mut noise = Noise(((index as u64) << 32 | u64::from(query) << 16 | round) * 2 + 1);
                noise.below(1);
                target(&[&[query][..], &changed(seed, &mut noise)].concat());
            }
        }
    }
}

#[test]
fn parquet_of_any_bytes() {
    hold_all(parquet, &[".parquet"], PARQUET.len());
}

#[test]
fn arrow_of_any_bytes() {
    hold_all(arrow, &[".arrow", ".arrows"], ARROW.len());
}

#[test]
fn text_of_any_bytes() {
    hold_all(
        text,
        &[".csv", ".csv.gz", ".jsonl", ".jsonl.zst", ".tsv"],
        TEXT.len(),
    );
}

/// Pipelines of an image.
const QUERIES: u64 = image::QUERIES.len() as u64;

/// Each file as it is and changed, with pipelines by turns: there are many files.
fn hold_images(suffix: &str) {
    for (index, seed) in seeds(&["images", "photos"], &[suffix]).iter().enumerate() {
        for round in 0..ROUNDS {
            let query = u8::try_from(round).unwrap();
            let mut noise = Noise(((index as u64) << 32 | round) * 2 + 1);
            noise.below(1);
            if round < QUERIES {
                image(&[&[query][..], seed].concat());
            }
            image(&[&[query][..], &changed(seed, &mut noise)].concat());
        }
    }
}

#[test]
fn png_of_any_bytes() {
    hold_images(".png");
}

#[test]
fn bmp_of_any_bytes() {
    hold_images(".bmp");
}

#[test]
fn gif_of_any_bytes() {
    hold_images(".gif");
}

#[test]
fn tiff_of_any_bytes() {
    hold_images(".tif");
}

#[test]
fn webp_of_any_bytes() {
    hold_images(".webp");
}

#[test]
fn jpeg_of_any_bytes() {
    hold_images(".jpg");
}

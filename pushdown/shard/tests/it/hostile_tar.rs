//! Tars that lie, or that readers take for different things. The snapshots have the error of each.

mod bounds;
mod entries;
mod extensions;
mod headers;

use crate::{
    read::{left_out, walk, walk_in_pieces},
    write::{END, tar_entry},
};

/// Where the fields of a header are.
const NAME: usize = 0;
const SIZE: usize = 124;
const CHECKSUM: usize = 148;
const MAGIC: usize = 257;
const PREFIX: usize = 345;

/// A file that has no fault.
fn good() -> Vec<u8> {
    tar_entry("good.jpg", b'0', b"content")
}

fn with_end(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), END.to_vec()].concat()
}

/// The results of tars, a line each, which are the same in pieces.
fn results(cases: &[(&str, Vec<u8>)]) -> String {
    let lines = cases.iter().map(|(case, shard)| {
        let result = walk(shard);
        for sizes in [&[1][..], &[0, 512], &[0, 300]] {
            assert_eq!(walk_in_pieces(shard, sizes), result, "{case} {sizes:?}");
        }
        match result {
            Ok(members) => {
                let members = members
                    .iter()
                    .map(|member| format!(" {} ({})", member.name.escape_debug(), member.range.size()));
                format!(
                    "{case}: read:{}{}",
                    members.collect::<Vec<_>>().concat(),
                    left_out(shard)
                )
            }
            Err(error) => format!("{case}: {error}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

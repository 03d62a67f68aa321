//! Zips that lie, or that readers take for different things. The snapshots have the error of each.

mod bounds;
mod files;
mod records;

use crate::{
    read::directory,
    write::{Zip, ZipFile},
};

/// Two files that have no fault.
fn files() -> [ZipFile; 2] {
    [ZipFile::new("a.jpg", b"content"), ZipFile::new("b.jpg", b"other")]
}

fn zip() -> Zip {
    Zip::new(&files())
}

/// The results of zips, a line each, which are the same if more bytes are read than needed.
fn results(cases: &[(&str, Vec<u8>)]) -> String {
    let lines = cases.iter().map(|(case, shard)| {
        let result = directory(shard, 0);
        for more in [1, 50, 1 << 20] {
            assert_eq!(directory(shard, more), result, "{case} {more}");
        }
        match result {
            Ok(members) => {
                let members = members
                    .iter()
                    .map(|member| format!(" {} ({})", member.name, member.range.size()));
                format!("{case}: read:{}", members.collect::<Vec<_>>().concat())
            }
            Err(error) => format!("{case}: {error}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

//! Members with extension headers, members of a zip, and tables that are members.

use std::iter;

use anyhow::{Result, ensure};
use pushdown::{
    Sample,
    shard::{EntryCursor, MemberRange, ShardLimits},
};
use pushdown_testkit::Backend;

use super::{
    Member, SHORT, Shard, check_values, error_of, rows,
    value_lab::{VALID, on, on_each_store},
    values::photo_shard,
};

on_each_store!(
    tables_can_be_members,
    members_of_a_zip_without_compression_are_samples,
);

/// A member is read whole, so that a table in it needs no ranges.
fn tables_can_be_members(backend: Backend) -> Result<()> {
    let rows_of = |text: &str| ("rows.csv".to_owned(), text.as_bytes().to_vec());
    let shard = Shard::new(vec![
        ("a.txt".to_owned(), b"no table".to_vec()),
        rows_of("n,name\n1,a\n2,b\n3,c\n"),
    ])?;
    on(backend, |lab| {
        lab.put("train.tar", &shard.bytes)?;
        let (etag, table) = (lab.etag("train.tar")?, &shard.members[1]);
        let pipeline = "select(columns=[name], where=\"n > 1\")";
        let ask = |key: &str, member: Option<&Member>| {
            let request = lab.keys().presign(lab.request("GET", key), VALID)?;
            let request = match member {
                Some(member) => member.name_in(request, Some(&etag)),
                None => request,
            };
            let request = request
                .header("x-pushdown-pipeline", pipeline)
                .header("Accept", "text/csv");
            let answer = request.send(lab.address())?;
            ensure!(answer.status == 200, "{}", answer.text());
            Ok(answer.text())
        };
        lab.put("rows.csv", &table.content)?;
        let (found, loose) = (ask("train.tar", Some(table))?, ask("rows.csv", None)?);
        ensure!(found == loose && found.contains("b\nc\n"), "{found}");
        let batch = lab.batch("train.tar", pipeline, std::slice::from_ref(table), &etag)?;
        let rows = rows(lab.send(&batch)?)?;
        ensure!(
            matches!(rows[0].value, Ok(Sample::Table(_))),
            "{:?}",
            rows[0].value
        );
        Ok(())
    })
}

/// The cursor of the library finds the members where the writer says that they are.
#[test]
fn indexed_members_are_those_that_are_read() -> Result<()> {
    let shard = photo_shard()?;
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    cursor.push(shard.bytes.clone().into());
    let found = iter::from_fn(|| cursor.next_member().transpose());
    let found = found.collect::<Result<Vec<_>, _>>()?;
    cursor.finish(shard.bytes.len() as u64)?;
    let found: Vec<_> = found
        .iter()
        .map(|member| (member.name.as_str(), member.range))
        .collect();
    let expected: Vec<_> = shard
        .members
        .iter()
        .map(|member| (member.name.as_str(), member.range))
        .collect();
    ensure!(found == expected, "{found:?}");
    ensure!(expected.iter().any(|(_, range)| range.header_bytes() > 512));
    Ok(())
}

/// An entry of a zip without compression.
fn zip_entry(name: &str, content: &[u8]) -> Result<Vec<u8>> {
    let size = u32::try_from(content.len())?.to_le_bytes();
    let name_bytes = u16::try_from(name.len())?.to_le_bytes();
    let head = [
        &b"PK\x03\x04"[..],
        // Version, flags and method.
        &[20, 0, 0, 0, 0, 0],
        // Time, date and checksum.
        &[0; 8],
        &size,
        &size,
        &name_bytes,
        &[0, 0],
        name.as_bytes(),
    ]
    .concat();
    Ok([head, content.to_vec()].concat())
}

fn members_of_a_zip_without_compression_are_samples(backend: Backend) -> Result<()> {
    let (mut bytes, mut members) = (Vec::new(), Vec::new());
    for member in Shard::of_photos(3)?.members {
        let entry = zip_entry(&member.name, &member.content)?;
        let header_bytes = u32::try_from(entry.len() - member.content.len())?;
        let range = MemberRange::new(bytes.len() as u64, header_bytes, member.content.len() as u64)?;
        bytes.extend(entry);
        members.push(Member { range, ..member });
    }
    on(backend, |lab| {
        lab.put("train.zip", &bytes)?;
        let etag = lab.etag("train.zip")?;
        let answer = lab.send(&lab.batch("train.zip", SHORT, &members, &etag)?)?;
        check_values(&rows(answer)?, &members, SHORT)?;
        // With the name of a tar.
        lab.put("train.tar", &bytes)?;
        let etag = lab.etag("train.tar")?;
        let answer = lab.ask("GET", "train.tar", "decode", "full", Some((&members[0], &etag)))?;
        ensure!(error_of(&answer) == (422, "InvalidShard".to_owned()));
        Ok(())
    })
}

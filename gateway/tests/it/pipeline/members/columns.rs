//! Further columns of a sample: members of its group, as they are.

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, ColumnMember, MAX_COLUMN_BYTES, OnError};

use super::{ETAG, Member, SHORT, Shard, ShardLab, codes, error_of, photo, rows};

const GROUPS: u32 = 8;

/// Groups of a label, a photo and a text, in this order. The first group has no text, and the third one an empty one.
fn groups() -> Result<Shard> {
    let mut contents = Vec::new();
    for number in 0..GROUPS {
        contents.push((format!("{number}.cls"), number.to_string().into_bytes()));
        contents.push((format!("{number}.jpg"), photo(600 + number, 400, "jpeg")));
        match number {
            0 => {}
            2 => contents.push((format!("{number}.txt"), Vec::new())),
            _ => contents.push((format!("{number}.txt"), format!("text {number}\0\n").into_bytes())),
        }
    }
    Shard::new(contents)
}

fn find<'a>(shard: &'a Shard, name: &str) -> Option<&'a Member> {
    shard.members.iter().find(|member| member.name == name)
}

fn column(member: &Member) -> ColumnMember {
    ColumnMember::new(&member.name, &member.range)
}

/// The photos, each with its label and its text as further columns.
fn request(lab: &ShardLab, numbers: &[u32]) -> Result<BatchRequest> {
    let photos: Vec<Member> = numbers
        .iter()
        .map(|number| {
            find(&lab.shard, &format!("{number}.jpg"))
                .cloned()
                .context("no photo")
        })
        .collect::<Result<_>>()?;
    let mut request = lab.request(SHORT, &photos)?;
    request.columns = vec!["cls".to_owned(), "txt".to_owned()];
    for (sample, number) in request.samples.iter_mut().zip(numbers) {
        sample.columns = ["cls", "txt"]
            .map(|extension| find(&lab.shard, &format!("{number}.{extension}")).map(column))
            .to_vec();
    }
    Ok(request)
}

#[test]
fn columns_travel_as_they_are_by_one_request() -> Result<()> {
    let lab = ShardLab::new(groups()?, &[])?;
    let numbers: Vec<u32> = (0..GROUPS).collect();
    let request = request(&lab, &numbers)?;
    let (answer, cost) = lab.cost(|| lab.send(&request))?;
    assert_eq!(cost, 1, "labels, photos and texts are read together");
    ensure!(answer.status == 200, "{}", answer.text());
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let found = reader.push(answer.body.into())?;
    assert_eq!(reader.column_names().context("no columns")?, ["cls", "txt"]);
    reader.finish()?;
    assert_eq!(found.len(), numbers.len());
    for (row, number) in found.iter().zip(0..) {
        let photo = find(&lab.shard, &format!("{number}.jpg")).context("no photo")?;
        ensure!(row.value == Ok(photo.value(SHORT)), "{number}: another value");
        let text = find(&lab.shard, &format!("{number}.txt"));
        let expected = [
            Some(number.to_string().into_bytes()),
            text.map(|member| member.content.clone()),
        ];
        let columns: Vec<_> = row.columns.iter().map(|content| content.as_deref()).collect();
        assert_eq!(columns, expected.each_ref().map(|content| content.as_deref()));
    }
    lab.check_memory()
}

/// Rows that are cached, or shared with another request, have their columns, too.
#[test]
fn columns_of_cached_values_are_read() -> Result<()> {
    let lab = ShardLab::new(groups()?, &["--cache-memory=64MiB"])?;
    let request = request(&lab, &[1, 5, 3])?;
    let first = lab.rows(&request)?;
    ensure!(codes(&first) == [""; 3], "{first:?}");
    let mut last = first.clone();
    for _ in 0..5 {
        last = lab.rows(&request)?;
        for (row, expected) in last.iter().zip(&first) {
            ensure!(
                (&row.value, &row.columns) == (&expected.value, &expected.columns),
                "{row:?}"
            );
        }
    }
    ensure!(last.iter().all(|row| row.cache.is_hit()), "{last:?}");
    Ok(())
}

#[test]
fn a_column_that_cannot_be_read_fails_its_row() -> Result<()> {
    let lab = ShardLab::new(groups()?, &[])?;
    let mut request = request(&lab, &[1, 2, 3, 4])?;
    let lie = request.samples[0].columns[0].as_mut().context("no column")?;
    lie.member = "other.cls".to_owned();
    request.samples[3].columns.clear();
    let found = lab.rows(&request)?;
    assert_eq!(codes(&found), ["InvalidShard", "", "", ""]);
    let error = found[0].value.as_ref().err().context("a value")?;
    ensure!(error.message.contains("other.cls"), "{error}");
    ensure!(found[0].columns.is_empty());
    assert_eq!(found[3].columns, [None, None], "no column at all");
    request.on_error = OnError::Fail;
    assert_eq!(lab.send(&request)?.status, 400);
    lab.check_memory()
}

#[test]
fn the_bytes_of_columns_are_bounded() -> Result<()> {
    let large = vec![7; usize::try_from(MAX_COLUMN_BYTES)?];
    let shard = Shard::new(vec![
        ("a.bin".to_owned(), large),
        ("a.jpg".to_owned(), photo(80, 60, "jpeg")),
        ("a.cls".to_owned(), b"1".to_vec()),
    ])?;
    let lab = ShardLab::new(shard, &["--memory-budget=16MiB"])?;
    let [bin, jpg, cls] = &lab.shard.members[..] else {
        anyhow::bail!("three members");
    };
    let photos = vec![jpg.clone(); 2];
    let mut request = lab.request(SHORT, &photos)?;
    request.columns = vec!["bin".to_owned()];
    for sample in &mut request.samples {
        sample.columns = vec![Some(column(bin))];
    }
    let found = lab.rows(&request)?;
    for row in &found {
        ensure!(row.value == Ok(jpg.value(SHORT)));
        assert_eq!(row.columns, [Some(bin.content.clone().into())]);
    }
    request.columns.push("cls".to_owned());
    for sample in &mut request.samples {
        sample.columns.push(Some(column(cls)));
    }
    let answer = lab.send(&request)?;
    assert_eq!(error_of(&answer), (400, "InvalidRequest".to_owned()));
    ensure!(answer.text().contains("1048576 bytes"), "{}", answer.text());
    Ok(())
}

/// Columns that are far from their value, and before it.
#[test]
fn columns_anywhere_in_the_shard_are_read() -> Result<()> {
    let gap = vec![7; 3 << 20];
    let shard = Shard::new(vec![
        ("a.jpg".to_owned(), photo(80, 60, "jpeg")),
        ("gap".to_owned(), gap),
        ("a.cls".to_owned(), b"1".to_vec()),
        ("b.cls".to_owned(), b"2".to_vec()),
        ("b.jpg".to_owned(), photo(81, 60, "jpeg")),
    ])?;
    let lab = ShardLab::new(shard, &[])?;
    let [first, _, first_label, second_label, second] = &lab.shard.members[..] else {
        anyhow::bail!("five members");
    };
    let mut request = lab.request(SHORT, &[first.clone(), second.clone()])?;
    request.columns = vec!["cls".to_owned()];
    request.samples[0].columns = vec![Some(column(first_label))];
    request.samples[1].columns = vec![Some(column(second_label))];
    let (found, cost) = lab.cost(|| lab.rows(&request))?;
    ensure!(codes(&found) == ["", ""], "{found:?}");
    assert_eq!(found[0].columns, [Some("1".into())]);
    assert_eq!(found[1].columns, [Some("2".into())]);
    assert_eq!(cost, 2, "the first photo, and the rest");
    Ok(())
}

/// A sample that is a whole object has no further columns.
#[test]
fn whole_objects_have_no_columns() -> Result<()> {
    let lab = ShardLab::new(groups()?, &[])?;
    lab.store.put("/photos/cat.jpg", ETAG, photo(80, 60, "jpeg"));
    let mut request = request(&lab, &[1])?;
    let signature = request.samples[0].signature.clone().unwrap_or_default();
    request
        .samples
        .push(BatchSample::new("/photos/cat.jpg", signature));
    let found = rows(lab.send(&request)?)?;
    assert_eq!(codes(&found), ["", ""]);
    assert_eq!(found[1].columns, [None, None]);
    Ok(())
}

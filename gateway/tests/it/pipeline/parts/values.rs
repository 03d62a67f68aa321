//! What a part has in it.

use pushdown::{
    part::{Label, LabelType, NotesRead, read_notes},
    shard::TarWriter,
    wire::ColumnMember,
};

use super::*;

const FORMATS: [PartFormat; 2] = [PartFormat::Wds, PartFormat::Parquet];
/// The value of each ends in another way: encoded images, images, and tensors after random steps.
const PIPELINES: [&str; 3] = [
    "decode | resize(32, 24) | encode(png)",
    RESIZE,
    "decode | random_resized_crop(16) | flip_h | to_float",
];

#[test]
fn a_part_has_the_bytes_that_its_values_give_anywhere() -> Result<()> {
    for (caller, _store) in stores()? {
        let objects = caller.put_photos(20)?;
        for (pipeline, format) in PIPELINES
            .iter()
            .flat_map(|pipeline| FORMATS.map(|format| (pipeline, format)))
        {
            let request = caller.part(pipeline.parse()?, format, &objects)?;
            let part = written(&caller.ask(&request)?)?;
            let found = caller.get(PART)?.context("no part")?;
            ensure!(
                found == expected_part(&request, &contents(&objects), &[])?,
                "{pipeline}, {format}: other bytes"
            );
            assert_eq!(
                (part.bytes, part.md5, part.samples),
                (found.len() as u64, md5(&found), 20)
            );
            ensure!(part.seconds > 0.0 && part.errors.is_empty());
        }
    }
    Ok(())
}

#[test]
fn a_trial_writes_nothing() -> Result<()> {
    for (caller, _store) in stores()? {
        let objects = caller.put_photos(6)?;
        for format in FORMATS {
            let request = caller.part(RESIZE.parse()?, format, &objects)?;
            let part = written(&caller.ask(&trial(&request))?)?;
            assert_eq!(caller.get(PART)?, None);
            let expected = expected_part(&request, &contents(&objects), &[])?;
            assert_eq!(
                (part.bytes, part.md5, part.samples),
                (expected.len() as u64, md5(&expected), 6)
            );
        }
    }
    Ok(())
}

#[test]
fn a_sample_that_no_step_can_process_is_noted_and_counted() -> Result<()> {
    for (caller, _store) in stores()? {
        let mut objects = caller.put_photos(6)?;
        // The first one is read alone.
        for index in [0, 1, 4] {
            objects[index] = caller.put(&objects[index].path, format!("no photo {index}"))?;
        }
        for format in FORMATS {
            let request = caller.part(RESIZE.parse()?, format, &objects)?;
            let part = written(&caller.ask(&request)?)?;
            let errors: Vec<_> = part
                .errors
                .iter()
                .map(|error| (error.row, error.code.as_str()))
                .collect();
            assert_eq!(errors, [0, 1, 4].map(|row| (row, "UndecodableObject")));
            assert_eq!(part.samples, 3);
            let found = caller.get(PART)?.context("no part")?;
            ensure!(found == expected_part(&request, &contents(&objects), &part.errors)?);
            let size = found.len() as u64;
            let NotesRead::Notes(notes) = read_notes(format, &found.into(), size)? else {
                bail!("no notes");
            };
            let names: Vec<_> = notes.iter().map(|note| note.name.as_str()).collect();
            assert_eq!(names, ["000.jpg", "001.jpg", "004.jpg"]);
        }
        // Of bad samples alone, too.
        let bad = [objects[0].clone(), objects[1].clone()];
        let request = caller.part(RESIZE.parse()?, PartFormat::Parquet, &bad)?;
        let part = written(&caller.ask(&request)?)?;
        assert_eq!((part.samples, part.errors.len()), (0, 2));
    }
    Ok(())
}

/// Members of a shard, each with the number of its class and a text, of which the second one has none.
#[test]
fn labels_and_further_columns_are_in_a_part() -> Result<()> {
    for (caller, _store) in stores()? {
        caller.put(BUCKET, "")?;
        let (mut tar, mut members) = (TarWriter::new(Vec::new()), Vec::new());
        for number in 0..8_u32 {
            let content = photo(80 + number, 60, "jpeg");
            let name = format!("{number}.jpg");
            let range = tar.append(&name, &content)?;
            let text = if number == 1 {
                None
            } else {
                let name = format!("{number}.json");
                let content = format!("{{\"number\": {number}}}");
                let range = tar.append(&name, content.as_bytes())?;
                Some((ColumnMember::new(&name, &range), content))
            };
            members.push((name, range, content, text));
        }
        let shard = caller.put(&format!("{BUCKET}/{PREFIX}0.tar"), tar.finish()?)?;
        let shards = vec![shard.clone(); members.len()];
        for format in FORMATS {
            let mut request = caller.part(RESIZE.parse()?, format, &shards)?;
            request.columns = vec!["json".to_owned()];
            for (sample, (name, range, _, text)) in request.samples.iter_mut().zip(&members) {
                *sample = sample.clone().with_member(name, range, &shard.etag);
                sample.columns = vec![text.as_ref().map(|(column, _)| column.clone())];
            }
            let part = request.part.as_mut().context("no part")?;
            part.label = Some(LabelType::Class {
                names: vec!["even".to_owned(), "odd".to_owned()],
            });
            part.labels = (0..8).map(|number| Label::Int(number % 2)).collect();
            let answer = written(&caller.ask(&request)?)?;
            assert_eq!((answer.samples, answer.errors), (8, Vec::new()));

            let names = members.iter().map(|(name, ..)| format!("0.tar/{name}"));
            let names: Vec<String> = names.collect();
            let spec = request.part_spec()?.context("no part")?;
            let mut writer = PartWriter::new(spec, names.iter().map(String::as_str))?;
            for (index, (_, _, content, text)) in members.iter().enumerate() {
                writer.push(&PartRow {
                    index,
                    label: Some(&Label::Int(i64::try_from(index)? % 2)),
                    columns: vec![text.as_ref().map(|(_, text)| text.clone().into())],
                    value: &super::super::expected(content, RESIZE),
                })?;
            }
            ensure!(
                caller.get(PART)? == Some(writer.finish(&[])?),
                "{format}: other bytes"
            );
        }
    }
    Ok(())
}

/// A part that replaces another one does not change it before it is complete.
#[test]
fn a_part_replaces_the_object_as_a_whole() -> Result<()> {
    for (caller, _store) in stores()? {
        let objects = caller.put_photos(3)?;
        caller.put(PART, "an earlier part")?;
        let mut request = caller.part(RESIZE.parse()?, PartFormat::Wds, &objects)?;
        request.samples[2].etag = Some("\"0\"".to_owned());
        refused(&caller.ask(&request)?)?;
        assert_eq!(caller.get(PART)?.as_deref(), Some(&b"an earlier part"[..]));
        request.samples[2].etag = Some(objects[2].etag.clone());
        let part = written(&caller.ask(&request)?)?;
        assert_eq!(md5(&caller.get(PART)?.context("no part")?), part.md5);
    }
    Ok(())
}

//! Values of members, on the embedded store and on SeaweedFS.

use anyhow::{Context as _, Result, ensure};
use pushdown::{Context, Pipeline, Sample, wire::Split};
use pushdown_testkit::{Backend, Response, photos};

use super::{
    Member, SHORT, Shard, rows,
    value_lab::{on, on_each_store},
};

const RANDOM: &str = "decode | random_resized_crop(32) | flip_h";

on_each_store!(
    a_member_equals_the_same_bytes_as_a_loose_object,
    random_steps_draw_by_key_and_member,
    each_member_has_an_etag_of_its_own,
);

/// A tar of fixtures in many formats, with a name that needs extension headers.
pub(super) fn photo_shard() -> Result<Shard> {
    let mut contents: Vec<_> = photos()?.into_iter().take(24).collect();
    let long = format!("{}/\u{e9} 100%.jpg", "folder".repeat(30));
    let (_, photo) = contents.first().context("no photo")?.clone();
    contents.push((long, photo));
    Shard::new(contents)
}

fn a_member_equals_the_same_bytes_as_a_loose_object(backend: Backend) -> Result<()> {
    let shard = photo_shard()?;
    on(backend, |lab| {
        lab.put("train.tar", &shard.bytes)?;
        let etag = lab.etag("train.tar")?;
        for (index, member) in shard.members.iter().enumerate() {
            let key = format!("{index}.bin");
            lab.put(&key, &member.content)?;
            for (pipeline, split) in [
                ("decode | resize(short=40) | center_crop(32) | to_float", "full"),
                ("decode | resize(short=40)", "smallest"),
                ("decode | encode(png)", "full"),
                ("decode", "0"),
            ] {
                let place = format!("{} {pipeline} {split}", member.name);
                let loose = lab.ask("GET", &key, pipeline, split, None)?;
                let found = lab.ask("GET", "train.tar", pipeline, split, Some((member, &etag)))?;
                ensure!(loose.status == 200, "{place}: {}", loose.text());
                ensure!(found.status == 200, "{place}: {}", found.text());
                ensure!(found.body == loose.body, "{place}: another value");
                for name in [
                    "content-length",
                    "content-type",
                    "x-pushdown-stage",
                    "x-pushdown-shape",
                    "x-pushdown-source-bytes",
                ] {
                    let headers = (found.header(name), loose.header(name));
                    ensure!(headers.0 == headers.1, "{place}: {name}: {headers:?}");
                }
                ensure!(
                    found.header("x-pushdown-source-etag") == Some(etag.as_str()),
                    "{place}"
                );
                ensure!(found.header("content-range").is_none(), "{place}");
            }
        }
        let pipeline = "decode | resize(short=40) | center_crop(32) | to_float";
        for split in [Split::Full, Split::At(1), Split::At(0), Split::Smallest] {
            let mut members = lab.batch("train.tar", pipeline, &shard.members, &etag)?;
            members.split = split;
            let rows = rows(lab.send(&members)?)?;
            ensure!(rows.len() == shard.members.len());
            for (row, member) in rows.into_iter().zip(&shard.members) {
                let object = Sample::Bytes(member.content.clone().into());
                let stage = usize::from(row.stage);
                let expected = members.pipeline.run(0..stage, object, &Context::new(b""))?;
                ensure!(
                    row.value == Ok(expected),
                    "{} {split:?}: another value",
                    member.name
                );
            }
        }
        Ok(())
    })
}

/// The id of a sample is that of the library: its key, a NUL, and the name of the member.
fn random_steps_draw_by_key_and_member(backend: Backend) -> Result<()> {
    let shard = Shard::of_photos(6)?;
    let pipeline: Pipeline = RANDOM.parse()?;
    on(backend, |lab| {
        lab.put("train.tar", &shard.bytes)?;
        let etag = lab.etag("train.tar")?;
        let answer = lab.send(&lab.batch("train.tar", RANDOM, &shard.members, &etag)?)?;
        for (row, member) in rows(answer)?.into_iter().zip(&shard.members) {
            let id = [&b"train.tar\0"[..], member.name.as_bytes()].concat();
            let context = Context::new(&id).with_randomness(7, 3);
            let object = Sample::Bytes(member.content.clone().into());
            let expected = pipeline.run(0..pipeline.len(), object, &context)?;
            ensure!(row.value == Ok(expected), "{}: another value", member.name);
            let get = lab.ask("GET", "train.tar", RANDOM, "full", Some((member, &etag)))?;
            let Ok(Sample::Image(image)) = row.value else {
                anyhow::bail!("{}: no image", member.name);
            };
            ensure!(get.status == 200, "{}", get.text());
            ensure!(get.body.ends_with(image.pixels()), "{}", member.name);
        }
        Ok(())
    })
}

fn each_member_has_an_etag_of_its_own(backend: Backend) -> Result<()> {
    let shard = Shard::of_photos(2)?;
    on(backend, |lab| {
        lab.put("train.tar", &shard.bytes)?;
        let etag = lab.etag("train.tar")?;
        let ask = |method: &str, member: &Member| {
            lab.ask(method, "train.tar", SHORT, "full", Some((member, &etag)))
        };
        let [first, second] = [&shard.members[0], &shard.members[1]];
        let derived = |answer: &Response| answer.header("etag").map(str::to_owned);
        let (one, other) = (ask("GET", first)?, ask("GET", second)?);
        ensure!(one.status == 200 && derived(&one).is_some(), "{}", one.text());
        ensure!(derived(&one) != derived(&other));
        let head = ask("HEAD", first)?;
        ensure!(head.status == 200 && head.body.is_empty(), "{head:?}");
        ensure!(derived(&head) == derived(&one));
        let vary = one.header("vary").unwrap_or_default();
        ensure!(vary.contains("x-pushdown-member"), "{vary}");
        Ok(())
    })
}

//! Lists that lie, shards that were replaced, and stores that answer otherwise than asked.

use anyhow::{Result, ensure};
use pushdown::shard::MemberRange;
use pushdown_testkit::{Exchange, Gateway, Request, Response, ScriptedOrigin, ranged};

use super::{ETAG, Member, PATH, SHORT, Shard, ShardLab, codes, error_of, photo, pixels};
use crate::it::gateway_for;

/// A member at another place than it is, or with another name.
fn moved(member: &Member, offset: u64, header_bytes: u32, size: u64) -> Result<Member> {
    Ok(Member {
        range: MemberRange::new(offset, header_bytes, size)?,
        ..member.clone()
    })
}

#[test]
fn a_list_that_lies_is_a_422_by_name() -> Result<()> {
    let lab = ShardLab::new(Shard::of_photos(3)?, &[])?;
    let (members, total) = (&lab.shard.members, lab.shard.bytes.len() as u64);
    let (first, last) = (&members[0], &members[2]);
    let range = &first.range;
    let (next, size) = (members[1].range.offset(), range.size());
    let lies = [
        ("another entry", moved(first, next, 512, size)?),
        ("no entry", moved(first, 512, 512, size)?),
        ("unaligned", moved(first, 1, 512, size)?),
        ("smaller", moved(first, 0, 512, size - 1)?),
        ("larger", moved(first, 0, 512, size + 1)?),
        ("a longer header", moved(first, 0, 1024, size - 512)?),
        ("the end marker", moved(first, total - 1024, 512, 10)?),
        ("beyond the end", moved(first, total + 512, 512, 10)?),
        ("past the end", moved(last, last.range.offset(), 512, 1 << 20)?),
        (
            "another name",
            Member {
                name: "other.jpg".to_owned(),
                ..first.clone()
            },
        ),
    ];
    for (lie, member) in &lies {
        for etag in [Some(ETAG), None] {
            let answer = lab.get_by("first", member, etag)?;
            assert_eq!(
                error_of(&answer),
                (422, "InvalidShard".to_owned()),
                "{lie}: {}",
                answer.text()
            );
            ensure!(answer.header("retry-after").is_none(), "{lie}");
            let message = answer.element("Message").unwrap_or_default();
            ensure!(message.contains(&member.name), "{lie}: {message}");
            ensure!(message.contains("`pushdown index`"), "{lie}: {message}");
        }
    }
    let lies: Vec<Member> = lies.into_iter().map(|(_, member)| member).collect();
    let all = [&lies[..], &members[..]].concat();
    let rows = lab.rows(&lab.request(SHORT, &all)?)?;
    let expected = [vec!["InvalidShard"; lies.len()], vec![""; members.len()]].concat();
    assert_eq!(codes(&rows), expected);
    lab.check_memory()
}

/// Whether the store evaluates `If-Match`, or ignores conditions.
#[test]
fn a_replaced_shard_is_a_409_by_name() -> Result<()> {
    for ignores_conditions in [false, true] {
        let lab = ShardLab::new(Shard::of_photos(3)?, &["--cache-memory=64MiB"])?;
        if ignores_conditions {
            lab.store.ignore_conditions();
        }
        let member = &lab.shard.members[1];
        for _ in 0..3 {
            lab.get(member)?;
        }
        let other = photo(40, 30, "jpeg");
        let mut replaced = lab.shard.bytes.clone();
        // The same place in the shard, with other pixels.
        let (start, length) = (lab.shard.entry_of(1)?.start + 512, other.len());
        ensure!(length < usize::try_from(member.range.size())?);
        replaced[start..start + length].copy_from_slice(&other);
        lab.store.put(PATH, "\"2\"", replaced);
        let answer = lab.get_by("first", member, Some(ETAG))?;
        assert_eq!(
            error_of(&answer),
            (409, "ShardReplaced".to_owned()),
            "{}",
            answer.text()
        );
        ensure!(answer.header("retry-after").is_none());
        let message = answer.element("Message").unwrap_or_default();
        ensure!(message.contains(&member.name) && message.contains("`pushdown index`"));
        let rows = lab.rows(&lab.request(SHORT, &lab.shard.members)?)?;
        assert_eq!(codes(&rows), ["ShardReplaced"; 3]);
        // A request without a version reads the current one.
        let answer = lab.get_by("first", member, None)?;
        ensure!(answer.status == 200, "{}", answer.text());
        ensure!(answer.header("x-pushdown-source-etag") == Some("\"2\""));
        ensure!(answer.body == pixels(super::expected(&other, SHORT)));
        let answer = lab.get_by("first", member, Some(ETAG))?;
        assert_eq!(error_of(&answer).1, "ShardReplaced");
        lab.check_memory()?;
    }
    Ok(())
}

/// A GET of the first member of a shard, at a gateway in front of a scripted store.
fn get(gateway: &Gateway, member: &Member) -> Result<Response> {
    let request = Request::new("GET", PATH)
        .header("Host", "store")
        .header("x-pushdown-pipeline", SHORT)
        .header("Accept", "application/octet-stream");
    member.name_in(request, Some(ETAG)).send(gateway.listen())
}

#[test]
fn a_store_that_sends_another_part_is_a_502() -> Result<()> {
    type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;
    let scripts: [Script; 4] = [
        // Another range than requested.
        |exchange, shard| {
            exchange.send("HTTP/1.1 206 Partial Content\r\nContent-Length: 600\r\nETag: \"1\"\r\nContent-Range: bytes 1-600/9000\r\n\r\n")?;
            exchange.send(&shard[1..601])
        },
        // No range at all.
        |exchange, shard| {
            exchange.send("HTTP/1.1 206 Partial Content\r\nContent-Length: 600\r\nETag: \"1\"\r\n\r\n")?;
            exchange.send(&shard[..600])
        },
        // No version.
        |exchange, shard| {
            exchange.send("HTTP/1.1 206 Partial Content\r\nContent-Length: 600\r\nContent-Range: bytes 0-599/9000\r\n\r\n")?;
            exchange.send(&shard[..600])
        },
        // Less than announced.
        |exchange, shard| {
            exchange.send("HTTP/1.1 206 Partial Content\r\nContent-Length: 8000\r\nETag: \"1\"\r\nContent-Range: bytes 0-7999/9000\r\n\r\n")?;
            exchange.close();
            exchange.send(&shard[..600])
        },
    ];
    let shard = Shard::new(vec![("a.jpg".to_owned(), photo(60, 40, "jpeg"))])?;
    ensure!(shard.members[0].range.size() < 7000 && shard.bytes.len() > 601);
    for (index, script) in scripts.into_iter().enumerate() {
        let bytes = shard.bytes.clone();
        let origin = ScriptedOrigin::start(move |exchange| script(exchange, &bytes))?;
        let gateway = gateway_for(&origin, &[])?;
        let answer = get(&gateway, &shard.members[0])?;
        assert_eq!(
            error_of(&answer),
            (502, "OriginUnavailable".to_owned()),
            "{index}: {}",
            answer.text()
        );
    }
    Ok(())
}

/// The request to the store has one range, and the version of the list.
#[test]
fn a_member_is_one_range_of_the_shard() -> Result<()> {
    let shard = Shard::of_photos(3)?;
    let (bytes, member) = (shard.bytes.clone(), &shard.members[1]);
    let origin = ScriptedOrigin::start(move |exchange| ranged(exchange, &bytes, "1"))?;
    let gateway = gateway_for(&origin, &[])?;
    let answer = get(&gateway, member)?;
    ensure!(answer.status == 200, "{}", answer.text());
    let requests = origin.requests();
    let [request] = &requests[..] else {
        anyhow::bail!("{requests:?}");
    };
    let (request, entry) = (request.to_lowercase(), member.range.entry());
    let range = format!("\r\nrange: bytes={}-{}\r\n", entry.start, entry.end - 1);
    ensure!(request.contains(&range), "{request}");
    ensure!(request.contains("\r\nif-match: \"1\"\r\n"), "{request}");
    Ok(())
}

#[test]
fn a_member_needs_its_place_and_a_pipeline_of_its_own() -> Result<()> {
    let lab = ShardLab::new(Shard::of_photos(2)?, &[])?;
    let member = &lab.shard.members[0];
    let request = Request::new("GET", PATH)
        .header("Host", "store")
        .header("x-pushdown-pipeline", SHORT)
        .header("x-pushdown-member", &member.name);
    let answer = request.send(lab.gateway.listen())?;
    assert_eq!(error_of(&answer), (400, "InvalidRequest".to_owned()));
    let message = answer.element("Message").unwrap_or_default();
    ensure!(
        message.contains("pushdown ls --members s3://photos/train.tar"),
        "{message}"
    );
    let mut request = lab.request("select", std::slice::from_ref(member))?;
    request.table = Some(pushdown::MergeRule::default());
    let answer = lab.send(&request)?;
    assert_eq!(error_of(&answer), (400, "InvalidRequest".to_owned()));
    ensure!(
        answer.text().contains("is a member of a shard"),
        "{}",
        answer.text()
    );
    let mut request = lab.request(SHORT, std::slice::from_ref(member))?;
    request.samples[0].etag = None;
    let answer = lab.send(&request)?;
    assert_eq!(error_of(&answer), (400, "InvalidRequest".to_owned()));
    ensure!(lab.store.requests().is_empty(), "{:?}", lab.store.requests());
    Ok(())
}

//! Members of shards as samples: values are those of the same bytes as loose objects.

mod cache;
mod columns;
mod formats;
mod hostile;
mod joined;
mod stores;
mod value_lab;
mod values;

use anyhow::{Context as _, Result, ensure};
use pushdown::{
    shard::{MemberRange, TarWriter},
    wire::{BatchRequest, BatchSample, CacheHints, Row},
};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response, signed_by};

use super::{SHORT, batch::rows, binary, expected, photo, pixels};

const PATH: &str = "/photos/train.tar";
const ETAG: &str = "\"1\"";

/// A member, and what it contains.
#[derive(Debug, Clone)]
struct Member {
    name: String,
    range: MemberRange,
    content: Vec<u8>,
}

/// A tar, and its members in their order.
#[derive(Debug, Clone)]
struct Shard {
    bytes: Vec<u8>,
    members: Vec<Member>,
}

impl Shard {
    fn new(contents: Vec<(String, Vec<u8>)>) -> Result<Self> {
        let (mut writer, mut members) = (TarWriter::new(Vec::new()), Vec::new());
        for (name, content) in contents {
            let range = writer.append(&name, &content)?;
            members.push(Member { name, range, content });
        }
        let bytes = writer.finish()?;
        Ok(Self { bytes, members })
    }

    /// A tar of photos, which all differ.
    fn of_photos(count: u32) -> Result<Self> {
        let photo = |number| (format!("{number:03}.jpg"), photo(80 + number, 60, "jpeg"));
        Self::new((0..count).map(photo).collect())
    }

    /// The same of photos that take so long to decode that values are worth caching.
    fn of_large_photos(count: u32) -> Result<Self> {
        let photo = |number| (format!("{number:03}.jpg"), photo(600 + number, 400, "jpeg"));
        Self::new((0..count).map(photo).collect())
    }

    /// The bytes of the entry of a member with a plain header.
    fn entry_of(&self, index: usize) -> Result<std::ops::Range<usize>> {
        let entry = self.members.get(index).context("no such member")?.range.entry();
        Ok(usize::try_from(entry.start)?..usize::try_from(entry.end)?)
    }
}

impl Member {
    /// Adds what says where the member is to a GET of its shard.
    fn name_in(&self, request: Request, etag: Option<&str>) -> Request {
        let range = &self.range;
        let request = request
            .header(
                "x-pushdown-member",
                &self.name.replace('%', "%25").replace('\u{e9}', "%C3%A9"),
            )
            .header("x-pushdown-offset", &range.offset().to_string())
            .header("x-pushdown-size", &range.size().to_string())
            .header("x-pushdown-header-size", &range.header_bytes().to_string());
        match etag {
            Some(etag) => request.header("x-pushdown-shard-etag", etag),
            None => request,
        }
    }

    fn sample(&self, shard: &BatchSample, etag: &str) -> BatchSample {
        shard.clone().with_member(&self.name, &self.range, etag)
    }

    /// The value of the member's bytes, computed in this process.
    fn value(&self, pipeline: &str) -> pushdown::Sample {
        expected(&self.content, pipeline)
    }
}

/// A gateway in front of a store with a policy, which supports ranges and has one shard, at [`PATH`].
struct ShardLab {
    gateway: Gateway,
    store: PolicyStore,
    shard: Shard,
}

impl ShardLab {
    fn new(shard: Shard, flags: &[&str]) -> Result<Self> {
        let store = PolicyStore::start()?;
        store.support_ranges();
        store.put(PATH, ETAG, shard.bytes.clone());
        let upstream = format!("--upstream=http://{}", store.address());
        Ok(Self {
            gateway: Gateway::launch(binary(), [&[upstream.as_str()], flags].concat())?,
            store,
            shard,
        })
    }

    /// A GET of a member by an access key.
    fn get_by(&self, access_key: &str, member: &Member, etag: Option<&str>) -> Result<Response> {
        let request = Request::new("GET", PATH)
            .header("Host", "store")
            .header("x-pushdown-pipeline", SHORT)
            .header("Accept", "application/octet-stream");
        let request = signed_by(member.name_in(request, etag), access_key, GOOD_SIGNATURE);
        request.send(self.gateway.listen())
    }

    /// A GET of a member that is answered with its value.
    fn get(&self, member: &Member) -> Result<Response> {
        let answer = self.get_by("first", member, Some(ETAG))?;
        ensure!(answer.status == 200, "{}", answer.text());
        ensure!(answer.body == pixels(member.value(SHORT)));
        Ok(answer)
    }

    /// A batch request of these members.
    fn request(&self, pipeline: &str, members: &[Member]) -> Result<BatchRequest> {
        self.request_by("first", pipeline, members)
    }

    fn request_by(&self, access_key: &str, pipeline: &str, members: &[Member]) -> Result<BatchRequest> {
        let presign = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={access_key}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
        );
        let shard = BatchSample::new(PATH, GOOD_SIGNATURE);
        let samples = members.iter().map(|member| member.sample(&shard, ETAG)).collect();
        let mut request = BatchRequest::new(pipeline.parse()?, presign, samples);
        request.cache = Some(CacheHints {
            epochs: 2,
            samples: self.shard.members.len() as u64,
        });
        Ok(request)
    }

    fn send(&self, request: &BatchRequest) -> Result<Response> {
        post("store", request)?.send(self.gateway.listen())
    }

    fn rows(&self, request: &BatchRequest) -> Result<Vec<Row>> {
        rows(self.send(request)?)
    }

    /// The number of requests to the store that an action costs.
    fn cost<T>(&self, action: impl FnOnce() -> Result<T>) -> Result<(T, usize)> {
        let before = self.store.requests().len();
        let result = action()?;
        Ok((result, self.store.requests().len() - before))
    }

    /// No request has memory any more.
    fn check_memory(&self) -> Result<()> {
        let limit = std::time::Duration::from_secs(20);
        pushdown_testkit::eventually("all memory is released", limit, || {
            let reserved = self.gateway.metric("pushdown_memory_reserved_bytes")?;
            Ok((reserved < 1.0).then_some(()))
        })
    }
}

fn post(host: &str, request: &BatchRequest) -> Result<Request> {
    Ok(Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", host)
        .body(request.to_json()?))
}

/// Checks that each row has the value of its member.
fn check_values(rows: &[Row], members: &[Member], pipeline: &str) -> Result<()> {
    ensure!(rows.len() == members.len(), "{} rows", rows.len());
    for row in rows {
        let member = members.get(row.row as usize).context("a row too many")?;
        match &row.value {
            Ok(value) => ensure!(*value == member.value(pipeline), "{}: another value", member.name),
            Err(error) => anyhow::bail!("{}: {error}", member.name),
        }
    }
    Ok(())
}

/// The codes of the rows in the order of the request; empty for a value.
fn codes(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(code).collect()
}

fn code(row: &Row) -> &str {
    match &row.value {
        Ok(_) => "",
        Err(error) => error.code.as_str(),
    }
}

/// Status and code of an error answer.
fn error_of(answer: &Response) -> (u16, String) {
    (answer.status, answer.element("Code").unwrap_or_default())
}

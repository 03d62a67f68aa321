//! Stores that replace, lose or refuse an object while it is read.

use anyhow::Result;
use pushdown_testkit::{Exchange, Gateway, ScriptedOrigin, first_byte, ranged};

use super::{FILTER, WIDE, expected_rows, get, read_table};
use crate::it::gateway_for;

/// The part of an object with ten row groups that a store serves before it fails.
#[derive(Clone, Copy, PartialEq)]
enum Served {
    Nothing,
    Footer,
    /// The footer and the first row group.
    FooterAndRows,
}

/// A store that serves this part of an object, and runs `then` when more is requested.
fn store(
    served: Served,
    then: impl Fn(&mut Exchange, &[u8]) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<(ScriptedOrigin, Gateway)> {
    let object = WIDE.write()?;
    let origin = ScriptedOrigin::start(move |exchange| {
        let in_first_group = || first_byte(exchange).is_some_and(|first| first < object.len() / 10);
        let served_now = match exchange.earlier_requests {
            0 => served != Served::Nothing,
            _ => served == Served::FooterAndRows && in_first_group(),
        };
        if served_now {
            ranged(exchange, &object, "one")
        } else {
            then(exchange, &object)
        }
    })?;
    let gateway = gateway_for(&origin, &[])?;
    Ok((origin, gateway))
}

#[test]
fn a_replaced_object_aborts_the_scan() -> Result<()> {
    type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;
    let scripts: [Script; 4] = [
        |exchange, _| exchange.answer("412 Precondition Failed", ""),
        // A store that ignores If-Match.
        |exchange, object| ranged(exchange, object, "another"),
        |exchange, object| ranged(exchange, &[object, &[0]].concat(), "one"),
        |exchange, _| exchange.answer("416 Range Not Satisfiable", ""),
    ];
    for script in scripts {
        let (origin, gateway) = store(Served::Footer, script)?;
        let answer = get(&gateway, FILTER).send(gateway.listen())?;
        assert_eq!(
            (answer.status, answer.element("Code").as_deref()),
            (409, Some("OperationAborted")),
            "{}",
            answer.text()
        );
        assert!(answer.header("retry-after").is_some());
        assert!(origin.requests()[1].to_lowercase().contains("if-match: \"one\""));
        // Once rows are sent the status cannot change: the answer must be cut, so that it does not look complete.
        let (_origin, gateway) = store(Served::FooterAndRows, script)?;
        assert!(get(&gateway, FILTER).send(gateway.listen()).is_err());
    }
    Ok(())
}

/// Sends an answer with this status, these headers and this body, independent of the requested range.
fn answer_with(exchange: &mut Exchange, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    exchange.send(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n"
    ))?;
    exchange.send(body)
}

#[test]
fn a_wrong_answer_to_a_range_request_is_refused() -> Result<()> {
    type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;
    let scripts: [(Script, u16, &str); 5] = [
        (
            |exchange, object| answer_with(exchange, "200 OK", "ETag: \"one\"\r\n", object),
            502,
            "found 200 and the whole object",
        ),
        (
            |exchange, object| {
                let range = format!("ETag: \"one\"\r\nContent-Range: bytes 10-29/{}\r\n", object.len());
                answer_with(exchange, "206 Partial Content", &range, &object[10..30])
            },
            502,
            "Content-Range does not match the requested range",
        ),
        (
            |exchange, object| {
                answer_with(
                    exchange,
                    "206 Partial Content",
                    "ETag: \"one\"\r\n",
                    &object[10..30],
                )
            },
            502,
            "Content-Range does not match the requested range",
        ),
        (
            |exchange, object| {
                let range = format!("Content-Range: bytes 10-29/{}\r\n", object.len());
                answer_with(exchange, "206 Partial Content", &range, &object[10..30])
            },
            409,
            "was replaced",
        ),
        (
            |exchange, _| exchange.answer("404 Not Found", ""),
            404,
            "was deleted",
        ),
    ];
    for (script, status, reason) in scripts {
        let (_origin, gateway) = store(Served::Footer, script)?;
        let answer = get(&gateway, FILTER).send(gateway.listen())?;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(reason), "{}", answer.text());
        let (_origin, gateway) = store(Served::FooterAndRows, script)?;
        assert!(get(&gateway, FILTER).send(gateway.listen()).is_err());
    }
    // A footer without a version cannot be used: later reads could mix two versions.
    let (_origin, gateway) = store(Served::Nothing, |exchange, object| {
        let (total, first) = (object.len(), object.len() - 100);
        let range = format!("Content-Range: bytes {first}-{}/{total}\r\n", total - 1);
        answer_with(exchange, "206 Partial Content", &range, &object[first..])
    })?;
    let answer = get(&gateway, FILTER).send(gateway.listen())?;
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(
        answer
            .text()
            .contains("expected an ETag with a range, found none"),
        "{}",
        answer.text()
    );
    Ok(())
}

/// A text object is read from its start, after its end has been read to detect the format.
#[test]
fn a_replaced_text_object_aborts_the_scan() -> Result<()> {
    type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;
    let scripts: [Script; 3] = [
        |exchange, _| exchange.answer("412 Precondition Failed", ""),
        |exchange, object| ranged(exchange, object, "another"),
        |exchange, object| ranged(exchange, &[object, b"1,2\n"].concat(), "one"),
    ];
    for script in scripts {
        let text = [b"n,m\n".as_slice(), &b"1,2\n".repeat(50_000)].concat();
        let origin = ScriptedOrigin::start(move |exchange| match exchange.earlier_requests {
            0 => ranged(exchange, &text, "one"),
            _ => script(exchange, &text),
        })?;
        let gateway = gateway_for(&origin, &[])?;
        let answer = get(&gateway, "select(format=csv)").send(gateway.listen())?;
        assert_eq!(
            (answer.status, answer.element("Code").as_deref()),
            (409, Some("OperationAborted")),
            "{}",
            answer.text()
        );
    }
    Ok(())
}

#[test]
fn a_signature_that_expires_in_mid_scan_is_reported() -> Result<()> {
    let (_origin, gateway) = store(Served::Footer, |exchange, _| exchange.answer("403 Forbidden", ""))?;
    let answer = get(&gateway, FILTER).send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (403, Some("AccessDenied"))
    );
    assert!(answer.text().contains("expired"), "{}", answer.text());
    Ok(())
}

#[test]
fn a_store_lost_in_mid_scan_does_not_truncate_the_table() -> Result<()> {
    let lost = |exchange: &mut Exchange, _: &[u8]| {
        exchange.send("HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\nETag: \"one\"\r\n\r\n")?;
        exchange.close();
        Ok(())
    };
    let (_origin, gateway) = store(Served::Footer, lost)?;
    let answer = get(&gateway, FILTER).send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (502, Some("OriginUnavailable"))
    );
    assert!(answer.header("retry-after").is_some());
    let (_origin, gateway) = store(Served::FooterAndRows, lost)?;
    assert!(get(&gateway, FILTER).send(gateway.listen()).is_err());
    assert!(gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}

#[test]
fn a_store_without_range_support_works() -> Result<()> {
    let object = WIDE.write()?;
    let (_origin, gateway) = store(Served::Nothing, |exchange, object| {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"one\"\r\n\r\n",
            object.len()
        ))?;
        exchange.send(object)
    })?;
    let answer = get(&gateway, FILTER).send(gateway.listen())?;
    assert_eq!(read_table(&answer)?, expected_rows(&object, FILTER)?);
    let stored = object.len();
    assert_eq!(
        answer.header("x-pushdown-source-bytes"),
        Some(format!("{stored}/{stored}").as_str())
    );
    Ok(())
}

#[test]
fn refusals_of_the_store_are_forwarded() -> Result<()> {
    for status in ["403 Forbidden", "404 Not Found", "503 Slow Down"] {
        let (origin, gateway) = store(Served::Nothing, move |exchange, _| {
            exchange.answer(status, "the store's words")
        })?;
        let answer = get(&gateway, FILTER).send(gateway.listen())?;
        assert_eq!(answer.text(), "the store's words");
        assert!(status.starts_with(&answer.status.to_string()));
        assert_eq!(answer.header("x-pushdown-stage"), None);
        assert_eq!(origin.requests().len(), 1);
    }
    Ok(())
}

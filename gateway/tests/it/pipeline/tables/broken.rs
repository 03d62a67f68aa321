//! Stores that change, lose or refuse an object while it is read.

use anyhow::Result;
use pushdown_testkit::{Exchange, Gateway, ScriptedOrigin, first_byte, ranged};

use super::{FEW, WIDE, expected_rows, get, rows};
use crate::it::gateway_for;

/// What a store gives of an object in ten row groups, before it changes its mind.
#[derive(Clone, Copy, PartialEq)]
enum Gives {
    Nothing,
    End,
    /// The end, and the first row group.
    Rows,
}

/// A store that gives so much of an object, and does what `then` says when more is asked for.
fn store(
    gives: Gives,
    then: impl Fn(&mut Exchange, &[u8]) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<(ScriptedOrigin, Gateway)> {
    let object = WIDE.write()?;
    let origin = ScriptedOrigin::start(move |exchange| {
        let of_the_first = || first_byte(exchange).is_some_and(|first| first < object.len() / 10);
        let given = match exchange.earlier {
            0 => gives != Gives::Nothing,
            _ => gives == Gives::Rows && of_the_first(),
        };
        if given {
            ranged(exchange, &object, "one")
        } else {
            then(exchange, &object)
        }
    })?;
    let gateway = gateway_for(&origin, &[])?;
    Ok((origin, gateway))
}

#[test]
fn a_replaced_object_is_no_mixture() -> Result<()> {
    type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;
    let scripts: [Script; 4] = [
        |exchange, _| exchange.answer("412 Precondition Failed", ""),
        // A store that does not heed If-Match.
        |exchange, object| ranged(exchange, object, "another"),
        |exchange, object| ranged(exchange, &[object, &[0]].concat(), "one"),
        |exchange, _| exchange.answer("416 Range Not Satisfiable", ""),
    ];
    for script in scripts {
        let (origin, gateway) = store(Gives::End, script)?;
        let answer = get(&gateway, FEW).send(gateway.listen())?;
        assert_eq!(
            (answer.status, answer.element("Code").as_deref()),
            (409, Some("OperationAborted")),
            "{}",
            answer.text()
        );
        assert!(answer.header("retry-after").is_some());
        assert!(origin.requests()[1].to_lowercase().contains("if-match: \"one\""));
        // With rows on their way there is no status any more: the answer must not look whole.
        let (_origin, gateway) = store(Gives::Rows, script)?;
        assert!(get(&gateway, FEW).send(gateway.listen()).is_err());
    }
    Ok(())
}

/// A part of an object in the words of a store that has its own mind about ranges.
fn part(exchange: &mut Exchange, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    exchange.send(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n"
    ))?;
    exchange.send(body)
}

#[test]
fn an_answer_that_is_not_the_part_asked_for_is_refused() -> Result<()> {
    type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;
    let scripts: [(Script, u16, &str); 5] = [
        (
            |exchange, object| part(exchange, "200 OK", "ETag: \"one\"\r\n", object),
            502,
            "the whole object, after it gave a part",
        ),
        (
            |exchange, object| {
                let range = format!("ETag: \"one\"\r\nContent-Range: bytes 10-29/{}\r\n", object.len());
                part(exchange, "206 Partial Content", &range, &object[10..30])
            },
            502,
            "a range with another range",
        ),
        (
            |exchange, object| {
                part(
                    exchange,
                    "206 Partial Content",
                    "ETag: \"one\"\r\n",
                    &object[10..30],
                )
            },
            502,
            "a range with another range",
        ),
        (
            |exchange, object| {
                let range = format!("Content-Range: bytes 10-29/{}\r\n", object.len());
                part(exchange, "206 Partial Content", &range, &object[10..30])
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
    for (script, status, says) in scripts {
        let (_origin, gateway) = store(Gives::End, script)?;
        let answer = get(&gateway, FEW).send(gateway.listen())?;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(says), "{}", answer.text());
        let (_origin, gateway) = store(Gives::Rows, script)?;
        assert!(get(&gateway, FEW).send(gateway.listen()).is_err());
    }
    // Nothing can be read by an end that has no version.
    let (_origin, gateway) = store(Gives::Nothing, |exchange, object| {
        let (total, first) = (object.len(), object.len() - 100);
        let range = format!("Content-Range: bytes {first}-{}/{total}\r\n", total - 1);
        part(exchange, "206 Partial Content", &range, &object[first..])
    })?;
    let answer = get(&gateway, FEW).send(gateway.listen())?;
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(answer.text().contains("without an ETag"), "{}", answer.text());
    Ok(())
}

/// Text is read from its start, once its end has told what it is.
#[test]
fn a_text_that_is_replaced_is_no_mixture() -> Result<()> {
    type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;
    let scripts: [Script; 3] = [
        |exchange, _| exchange.answer("412 Precondition Failed", ""),
        |exchange, object| ranged(exchange, object, "another"),
        |exchange, object| ranged(exchange, &[object, b"1,2\n"].concat(), "one"),
    ];
    for script in scripts {
        let text = [b"n,m\n".as_slice(), &b"1,2\n".repeat(50_000)].concat();
        let origin = ScriptedOrigin::start(move |exchange| match exchange.earlier {
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
fn a_signature_that_expires_says_so() -> Result<()> {
    let (_origin, gateway) = store(Gives::End, |exchange, _| exchange.answer("403 Forbidden", ""))?;
    let answer = get(&gateway, FEW).send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (403, Some("AccessDenied"))
    );
    assert!(answer.text().contains("expired"), "{}", answer.text());
    Ok(())
}

#[test]
fn a_store_lost_in_mid_scan_is_no_short_table() -> Result<()> {
    let lost = |exchange: &mut Exchange, _: &[u8]| {
        exchange.send("HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\nETag: \"one\"\r\n\r\n")?;
        exchange.close();
        Ok(())
    };
    let (_origin, gateway) = store(Gives::End, lost)?;
    let answer = get(&gateway, FEW).send(gateway.listen())?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (502, Some("OriginUnavailable"))
    );
    assert!(answer.header("retry-after").is_some());
    let (_origin, gateway) = store(Gives::Rows, lost)?;
    assert!(get(&gateway, FEW).send(gateway.listen()).is_err());
    assert!(gateway.metric("pushdown_permits_in_use_bytes")?.abs() < 1.0);
    Ok(())
}

#[test]
fn a_store_without_ranges_serves_as_well() -> Result<()> {
    let object = WIDE.write()?;
    let (_origin, gateway) = store(Gives::Nothing, |exchange, object| {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"one\"\r\n\r\n",
            object.len()
        ))?;
        exchange.send(object)
    })?;
    let answer = get(&gateway, FEW).send(gateway.listen())?;
    assert_eq!(rows(&answer)?, expected_rows(&object, FEW)?);
    let stored = object.len();
    assert_eq!(
        answer.header("x-pushdown-source-bytes"),
        Some(format!("{stored}/{stored}").as_str())
    );
    Ok(())
}

#[test]
fn what_the_store_refuses_is_its_own_answer() -> Result<()> {
    for status in ["403 Forbidden", "404 Not Found", "503 Slow Down"] {
        let (origin, gateway) = store(Gives::Nothing, move |exchange, _| {
            exchange.answer(status, "the store's words")
        })?;
        let answer = get(&gateway, FEW).send(gateway.listen())?;
        assert_eq!(answer.text(), "the store's words");
        assert!(status.starts_with(&answer.status.to_string()));
        assert_eq!(answer.header("x-pushdown-stage"), None);
        assert_eq!(origin.requests().len(), 1);
    }
    Ok(())
}

//! Objects with keys that clients write in different forms.

use anyhow::{Result, ensure};
use pushdown_testkit::Response;

use crate::it::resign::{BUCKET, Client};

/// A key in canonical form, and as other clients may send it.
struct OddKey {
    canonical: &'static str,
    other: &'static str,
}

const ODD_KEYS: [OddKey; 7] = [
    OddKey {
        canonical: "with%20two%20%20spaces",
        other: "with%20two%20%20spaces",
    },
    OddKey {
        canonical: "a%2Bb%3Ac%28d%29e%21f%2Ag%27h%40i%2Cj%3Bk%3Dl%26m%24n",
        other: "a+b:c(d)e!f*g'h@i,j;k=l&m$n",
    },
    OddKey {
        canonical: "caf%C3%A9/gr%C3%BC%C3%9Fe",
        other: "caf%c3%a9/gr%c3%bc%c3%9fe",
    },
    OddKey {
        canonical: "folder/slash",
        other: "folder%2Fslash",
    },
    OddKey {
        canonical: "an%252Fescape",
        other: "an%252Fescape",
    },
    OddKey {
        canonical: "tilde~dash-dot.under_score",
        other: "tilde%7Edash%2Ddot%2Eunder%5Fscore",
    },
    OddKey {
        canonical: "100%25",
        other: "%31%30%30%25",
    },
];

/// How a client writes keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spelling {
    Canonical,
    Other,
}

/// Stores, reads and deletes objects with odd keys.
pub(super) fn send(client: &Client, spelling: Spelling) -> Result<Vec<Response>> {
    let mut answers = Vec::new();
    for key in &ODD_KEYS {
        let name = match spelling {
            Spelling::Canonical => key.canonical,
            Spelling::Other => key.other,
        };
        let target = format!("{BUCKET}/odd/{name}");
        let put = client.put(&target, key.canonical)?;
        ensure!(put.status == 200, "PUT {target}: {put:?}");
        let get = client.call("GET", &target)?;
        ensure!(get.body == key.canonical.as_bytes(), "GET {target}: {get:?}");
        answers.extend([put, get, client.call("DELETE", &target)?]);
    }
    Ok(answers)
}

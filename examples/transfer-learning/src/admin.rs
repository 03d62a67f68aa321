//! Metrics of the gateway, from its admin port.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::time::timeout;

const CPU_METRIC: &str = "process_cpu_seconds_total ";
const MAX_PAGE_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

/// The admin port of a gateway.
#[derive(Debug)]
pub(crate) struct Admin {
    client: Client<HttpConnector, Empty<Bytes>>,
    page: Uri,
}

impl Admin {
    /// The port at `http://host:port`.
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let page = format!("{}/metrics", url.trim_end_matches('/'));
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            page: page
                .parse()
                .with_context(|| format!("invalid URL of an admin port: `{url}`"))?,
        })
    }

    /// CPU time of the gateway so far, in seconds.
    pub(crate) async fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let metrics = timeout(TIMEOUT, self.metrics()).await;
        let text = metrics
            .map_err(anyhow::Error::from)
            .flatten()
            .with_context(|| format!("cannot read the gateway's metrics at {}", self.page))?;
        let value = text.lines().find_map(|line| line.strip_prefix(CPU_METRIC));
        value
            .and_then(|value| value.trim().parse().ok())
            .with_context(|| format!("{} does not contain {}", self.page, CPU_METRIC.trim()))
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        let answer = self.client.get(self.page.clone()).await?;
        anyhow::ensure!(answer.status().is_success(), "{}", answer.status());
        let body = Limited::new(answer.into_body(), MAX_PAGE_BYTES).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!(error))?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

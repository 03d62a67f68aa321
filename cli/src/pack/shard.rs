//! A shard that is written.

use std::{io, mem, sync::Arc};

use parking_lot::Mutex;
use pushdown::shard::TarWriter;

use super::{source::SourceFile, target::Output};

/// Bytes that are passed on together.
const BUFFER_BYTES: usize = 1 << 20;

/// A tar, of which at most a buffer and a piece of a content are in memory.
pub(super) struct Shard {
    writer: TarWriter<Buffer>,
    sink: Sink,
}

/// Bytes of the tar that are not passed on. The writer is synchronous, the output is not. Clones share them.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

/// Passes the buffer on to the output.
struct Sink {
    buffer: Buffer,
    output: Output,
    /// Bytes passed on.
    bytes: u64,
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shard {
    pub(super) fn new(output: Output) -> Self {
        let buffer = Buffer::default();
        Self {
            writer: TarWriter::new(buffer.clone()),
            sink: Sink {
                buffer,
                output,
                bytes: 0,
            },
        }
    }

    /// Begins a file. Its content has to follow.
    pub(super) async fn start(&mut self, file: &SourceFile) -> anyhow::Result<()> {
        let started = self.writer.start(&file.name, file.bytes);
        started.map_err(|error| anyhow::anyhow!("cannot pack {}: {error}", file.name))?;
        self.sink.pass_on(BUFFER_BYTES).await
    }

    /// Adds a piece of the content.
    pub(super) async fn write(&mut self, piece: &[u8]) -> anyhow::Result<()> {
        self.writer.write_content(piece)?;
        self.sink.pass_on(BUFFER_BYTES).await
    }

    /// Ends the shard, and returns its number of bytes. If that fails, nothing of it is left.
    pub(super) async fn finish(self) -> anyhow::Result<u64> {
        let Self { writer, mut sink } = self;
        let ended = match writer.finish() {
            Ok(_buffer) => sink.pass_on(0).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = ended {
            sink.output.discard().await;
            return Err(error);
        }
        sink.output.finish().await?;
        Ok(sink.bytes)
    }

    /// Leaves nothing of the shard.
    pub(super) async fn discard(self) {
        self.sink.output.discard().await;
    }
}

impl Sink {
    /// Passes the buffer on if it has at least this many bytes.
    async fn pass_on(&mut self, at_least: usize) -> anyhow::Result<()> {
        if self.buffer.0.lock().len() < at_least {
            return Ok(());
        }
        let bytes = mem::take(&mut *self.buffer.0.lock());
        self.output.write(&bytes).await?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

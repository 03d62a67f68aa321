//! The storage of the result cache: memory and disk, by foyer. The only file that knows foyer's disk cache.

use std::{
    fmt,
    hash::{BuildHasherDefault, Hasher},
    io,
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use foyer::{
    BlockEngineConfig, Cache, CacheBuilder, Code, DeviceBuilder as _, Event, EventListener, EvictionConfig,
    FifoConfig, FsDeviceBuilder, HybridCache, HybridCacheBuilder, HybridCachePolicy, RecoverMode,
};
use pushdown::pipeline::Digest;

use super::{CacheLevel, Entry, MAX_ENTRY_BYTES, ValueKey, value::Owner};
use crate::{config::CACHE_BLOCK_BYTES, private};

/// Bytes of a block of the disk cache, and of its buffers.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const BLOCK_BYTES: usize = CACHE_BLOCK_BYTES as usize;

/// Bytes of an entry in addition to those of its value: the head of the object, that of the value, padding, and the cache's own.
const ENTRY_OVERHEAD_BYTES: u64 = 1024;
/// Entries on the disk begin at multiples of this.
const DISK_PAGE_BYTES: u64 = 4096;

/// Where a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// In memory, in an entry of so many bytes.
    Memory(u64),
    /// On the disk, probably.
    Disk,
}

/// Both levels. Clones share them.
#[derive(Clone)]
pub(super) struct Levels {
    memory: Option<Cache<ValueKey, Resident, KeyHash>>,
    disk: Option<HybridCache<ValueKey, Entry, KeyHash>>,
    /// What an entry uses at least, so that the index of the disk stays within its memory.
    min_disk_entry_bytes: u64,
}

/// An entry in memory.
#[derive(Debug, Clone)]
struct Resident {
    entry: Entry,
    owner: Owner,
}

/// Whether a value that leaves the memory, of this size in bytes, still has a place in the cache.
pub(super) type HasPlace = Arc<dyn Fn(Owner, usize) -> bool + Send + Sync>;

/// Writes to the disk what leaves the memory and still has a place: when its set has moved from memory to disk, or has grown past
/// the memory, the value is only there.
struct Demotion {
    disk: HybridCache<ValueKey, Entry, KeyHash>,
    has_place: HasPlace,
}

impl EventListener for Demotion {
    type Key = ValueKey;
    type Value = Resident;

    fn on_leave(&self, reason: Event, key: &ValueKey, resident: &Resident) {
        let Resident { entry, owner } = resident;
        if reason == Event::Evict && (self.has_place)(*owner, entry.as_bytes().len()) {
            drop(self.disk.storage_writer(*key).insert(entry.clone()));
        }
    }
}

/// Keys are digests: their last 64 bits are their hash.
type KeyHash = BuildHasherDefault<DigestHasher>;

/// Takes the last eight bytes that are hashed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk() {
            self.0 = u64::from_le_bytes(*last);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Levels {
    /// Levels of at most these bytes; 0 means that a level is not used. Values of an earlier run are found again in the folder.
    /// What leaves the memory moves to the disk if it `has_place`.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub(super) async fn open(
        memory_bytes: u64,
        disk: Option<(&Path, u64)>,
        max_disk_entries: u64,
        has_place: HasPlace,
    ) -> io::Result<Self> {
        let disk_bytes = disk.map_or(0, |(_, bytes)| bytes);
        let disk = match disk {
            Some((folder, bytes)) => Some(open_disk(folder, bytes).await?),
            None => None,
        };
        let memory = (memory_bytes > 0).then(|| {
            let builder = CacheBuilder::new(usize::try_from(memory_bytes).unwrap_or(usize::MAX))
                // With several shards one of them may be full while others have room.
                .with_shards(1)
                .with_eviction_config(EvictionConfig::from(FifoConfig::default()))
                .with_hash_builder(KeyHash::default())
                .with_weighter(|_: &ValueKey, resident: &Resident| {
                    resident.entry.as_bytes().len() + MEMORY_OVERHEAD_BYTES
                });
            match disk.clone() {
                Some(disk) => builder
                    .with_event_listener(Arc::new(Demotion { disk, has_place }))
                    .build(),
                None => builder.build(),
            }
        });
        Ok(Self {
            memory,
            disk,
            min_disk_entry_bytes: disk_bytes / max_disk_entries.max(1),
        })
    }

    /// Where the value of a key may be. A hit on the disk can turn out to be a miss.
    pub(super) fn find(&self, key: &ValueKey) -> Option<Found> {
        if let Some(entry) = self.memory.as_ref().and_then(|memory| memory.get(key)) {
            return Some(Found::Memory(entry.value().entry.as_bytes().len() as u64));
        }
        let is_on_disk = |disk: &HybridCache<_, _, _>| disk.storage().may_contains(key);
        self.disk.as_ref().is_some_and(is_on_disk).then_some(Found::Disk)
    }

    /// Bytes that a value of `value_bytes` uses.
    pub(super) fn used_bytes(&self, value_bytes: u64) -> u64 {
        let bytes = value_bytes + ENTRY_OVERHEAD_BYTES;
        if self.disk.is_none() {
            return bytes;
        }
        let bytes = bytes
            .next_multiple_of(DISK_PAGE_BYTES)
            .max(self.min_disk_entry_bytes);
        // No entry lies in two blocks: the end of a block is lost.
        CACHE_BLOCK_BYTES
            .checked_div(CACHE_BLOCK_BYTES / bytes.max(1))
            .map_or(bytes, |part| part.max(bytes))
    }

    /// Removes an entry.
    pub(super) fn remove(&self, key: &ValueKey) {
        if let Some(memory) = &self.memory {
            memory.remove(key);
        }
        if let Some(disk) = &self.disk {
            disk.remove(key);
        }
    }

    /// The entry of a key. An I/O error, and an entry whose bytes have changed, is a miss.
    pub(super) async fn get(&self, key: &ValueKey) -> Option<(Entry, CacheLevel)> {
        if let Some(entry) = self.memory.as_ref().and_then(|memory| memory.get(key)) {
            return Some((entry.value().entry.clone(), CacheLevel::Memory));
        }
        match self.disk.as_ref()?.get(key).await {
            Ok(entry) => Some((entry?.value().clone(), CacheLevel::Disk)),
            Err(error) => {
                tracing::debug!(%error, "cannot read from the disk of the result cache");
                None
            }
        }
    }

    /// Adds an entry to a level. It may be dropped: if the disk is too slow, full or broken.
    pub(super) fn insert(&self, key: ValueKey, entry: Entry, level: CacheLevel, owner: Owner) {
        match (level, &self.memory, &self.disk) {
            (CacheLevel::Memory, Some(memory), _) => drop(memory.insert(key, Resident { entry, owner })),
            (CacheLevel::Disk, _, Some(disk)) => drop(disk.storage_writer(key).insert(entry)),
            (CacheLevel::Memory, None, _) | (CacheLevel::Disk, _, None) => {}
        }
    }

    /// Bytes of the values in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.usage() as u64)
    }

    /// Waits until what has been added is on the disk, or was dropped.
    pub(super) async fn flush(&self) {
        if let Some(disk) = &self.disk {
            disk.storage().wait().await;
        }
    }

    /// Writes what is still in buffers.
    pub(super) async fn close(&self) {
        if let Some(disk) = &self.disk
            && let Err(error) = disk.close().await
        {
            tracing::warn!(%error, "cannot close the disk of the result cache");
        }
    }
}

/// Bytes of an entry in memory in addition to its own.
const MEMORY_OVERHEAD_BYTES: usize = 160;

async fn open_disk(folder: &Path, bytes: u64) -> io::Result<HybridCache<ValueKey, Entry, KeyHash>> {
    // Values of all tenants, in plain text: nobody else may read or replace them.
    private::folder::open(folder)?;
    let device = FsDeviceBuilder::new(folder)
        .with_capacity(usize::try_from(bytes).unwrap_or(usize::MAX))
        .build()
        .map_err(io::Error::other)?;
    let engine = BlockEngineConfig::new(device)
        .with_block_size(BLOCK_BYTES)
        .with_buffer_pool_size(BLOCK_BYTES)
        .with_submit_queue_size_threshold(BLOCK_BYTES);
    HybridCacheBuilder::new()
        .with_name("result-cache")
        // Nothing is written to disk on eviction from memory: each level holds other values.
        .with_policy(HybridCachePolicy::WriteOnInsertion)
        .memory(1)
        .with_shards(1)
        .with_hash_builder(KeyHash::default())
        .with_weighter(|_: &ValueKey, entry: &Entry| entry.as_bytes().len())
        .storage()
        .with_engine_config(engine)
        .with_recover_mode(RecoverMode::Quiet)
        .build()
        .await
        .map_err(io::Error::other)
}

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Levels")
            .field("memory", &self.memory.is_some())
            .field("disk", &self.disk.is_some())
            .finish_non_exhaustive()
    }
}

impl Code for ValueKey {
    fn encode(&self, writer: &mut impl io::Write) -> foyer::Result<()> {
        writer
            .write_all(self.digest().as_bytes())
            .map_err(foyer::Error::io_error)
    }

    fn decode(reader: &mut impl io::Read) -> foyer::Result<Self> {
        let mut bytes = [0; 32];
        reader.read_exact(&mut bytes).map_err(foyer::Error::io_error)?;
        Ok(Self::from(Digest::from_bytes(bytes)))
    }

    fn estimated_size(&self) -> usize {
        32
    }
}

impl Code for Entry {
    fn encode(&self, writer: &mut impl io::Write) -> foyer::Result<()> {
        self.as_bytes().encode(writer)
    }

    fn decode(reader: &mut impl io::Read) -> foyer::Result<Self> {
        let mut length = [0; size_of::<u64>()];
        reader.read_exact(&mut length).map_err(foyer::Error::io_error)?;
        let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > MAX_ENTRY_BYTES {
            return Err(foyer::Error::new(
                foyer::ErrorKind::Parse,
                "the entry is too long",
            ));
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).map_err(foyer::Error::io_error)?;
        Ok(Self::from(Bytes::from(bytes)))
    }

    fn estimated_size(&self) -> usize {
        self.as_bytes().estimated_size()
    }
}

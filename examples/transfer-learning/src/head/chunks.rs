//! Work on chunks of rows, on several threads.

use std::{num::NonZeroUsize, panic::resume_unwind, thread};

/// Calls `apply` with the number and the values of each chunk of `length` values, on `threads` threads. The results are in the
/// order of the chunks.
pub(super) fn map_chunks<T: Send>(
    threads: NonZeroUsize,
    values: &[f32],
    length: usize,
    apply: impl Fn(usize, &[f32]) -> T + Sync,
) -> Vec<T> {
    let chunks: Vec<(usize, &[f32])> = values.chunks(length).enumerate().collect();
    let per_thread = chunks.len().div_ceil(threads.get()).max(1);
    let apply_all = |chunks: &[(usize, &[f32])]| -> Vec<T> {
        chunks.iter().map(|(index, chunk)| apply(*index, chunk)).collect()
    };
    let apply_all = &apply_all;
    thread::scope(|scope| {
        let threads: Vec<_> = chunks
            .chunks(per_thread)
            .map(|chunks| scope.spawn(move || apply_all(chunks)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_chunks() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        for threads in 1..5 {
            let threads = NonZeroUsize::new(threads).unwrap();
            let sums = map_chunks(threads, &values, 2, |index, chunk| {
                (index, chunk.iter().sum::<f32>().to_bits())
            });
            let expected = [(0, 3.0_f32), (1, 7.0), (2, 5.0)];
            assert_eq!(sums, expected.map(|(index, sum)| (index, sum.to_bits())));
            assert!(map_chunks(threads, &[], 2, |index, _| index).is_empty());
        }
    }
}

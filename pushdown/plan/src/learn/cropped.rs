//! Learns the costs of cropped JPEGs: objects without the blocks that no later step reads.
//!
//! The gateway makes them, and the host runs all steps on them as on the object. Decoding a crop takes less time, so its seconds never
//! count as those of plain reading.

use super::{Candidate, Costs, MEMORY_SAMPLES, MIN_REFERENCE_SAMPLES, Mean, Stage};

/// The answer to a request for a cropped JPEG.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CropAnswer {
    /// Bytes of the object; `None` if they are unknown.
    pub object_bytes: Option<f64>,
    /// Bytes that arrived.
    pub bytes: f64,
    /// CPU seconds at the gateway.
    pub gateway_seconds: f64,
    /// Whether the gateway sent the object itself, since nothing could be cropped.
    pub is_object: bool,
}

/// What was observed of requests for cropped JPEGs in a class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CroppedCosts {
    /// Ratio of the bytes that arrived to those of the object, over all answers.
    bytes_ratio: Mean,
    /// Ratio of answers that are the object itself.
    object_ratio: Mean,
    /// Gateway seconds of crops, at the usual pace.
    gateway_seconds: Mean,
    /// Gateway seconds of answers that are the object itself.
    object_gateway_seconds: Mean,
    /// Host seconds of the first `host_steps` steps of crops, at the usual pace.
    host_seconds: Mean,
    /// The number of first steps that run as one on the host.
    host_steps: usize,
}

impl CroppedCosts {
    /// Whether the gateway has answered a request.
    pub(super) fn is_observed(&self) -> bool {
        self.bytes_ratio.get().is_some()
    }
}

impl Costs {
    /// Sets whether the reader may ask for cropped JPEGs: the expected ratio of their blocks to those of the object, from 0 to 1, or
    /// `None` if it may not. Default: `None`.
    pub const fn set_cropped_share(&mut self, share: Option<f64>) {
        self.cropped_share = share;
    }

    /// Records the answer to a request for a cropped JPEG.
    pub fn observe_crop_answer(&mut self, class: usize, answer: &CropAnswer) {
        let Some(class) = self.classes.get_mut(class) else {
            return;
        };
        let CropAnswer {
            bytes,
            gateway_seconds: seconds,
            is_object,
            ..
        } = *answer;
        let object_bytes = answer.object_bytes.unwrap_or(class.object_bytes);
        let cropped = &mut class.cropped;
        let ratio = if is_object { 1.0 } else { bytes / object_bytes };
        cropped.bytes_ratio.add(ratio, MEMORY_SAMPLES);
        cropped
            .object_ratio
            .add(if is_object { 1.0 } else { 0.0 }, MEMORY_SAMPLES);
        if is_object {
            cropped.object_gateway_seconds.add(seconds, MEMORY_SAMPLES);
            return;
        }
        let reference = cropped.gateway_seconds.get_from(MIN_REFERENCE_SAMPLES);
        if let Some(reference) = reference.filter(|seconds| *seconds > 0.0) {
            self.gateway_pace.add(seconds / reference);
        }
        let pace = self.gateway_pace.median().unwrap_or(1.0);
        cropped.gateway_seconds.add(seconds / pace, MEMORY_SAMPLES);
    }

    /// Records the seconds that the host took for the first `steps` steps of a sample that arrived as a cropped JPEG, which ran as one.
    pub fn observe_cropped_host_seconds(&mut self, class: usize, steps: usize, seconds: f64) {
        let Some(class) = self.classes.get_mut(class) else {
            return;
        };
        let cropped = &mut class.cropped;
        if cropped.host_steps != steps {
            (cropped.host_steps, cropped.host_seconds) = (steps, Mean::default());
        }
        let reference = cropped.host_seconds.get_from(MIN_REFERENCE_SAMPLES);
        if let Some(reference) = reference.filter(|seconds| *seconds > 0.0) {
            self.host_pace.add(seconds / reference);
        }
        let pace = self.host_pace.median().unwrap_or(1.0);
        cropped.host_seconds.add(seconds / pace, MEMORY_SAMPLES);
    }

    /// The candidate of cropped JPEGs next to that of plain reading; `None` if the reader asks for none.
    pub(super) fn cropped_candidate(&self, class: usize, plain: &Candidate) -> Option<Candidate> {
        let share = self.cropped_share?;
        let cropped = &self.classes.get(class)?.cropped;
        let gateway_pace = self.gateway_pace.median().unwrap_or(1.0);
        let host_pace = self.host_pace.median().unwrap_or(1.0);
        let object_ratio = cropped.object_ratio.get().unwrap_or_default();
        let crop_ratio = 1.0 - object_ratio;
        // Before the first observation a crop is assumed to take as long as decoding: it reads all of the file, and writes a part of it.
        // A gateway whose steps were not observed is assumed to be as fast as the host.
        let gateway_seconds = cropped.gateway_seconds.get().or_else(|| {
            let decoding_seconds = self.host_seconds(class, self.first_stage())?;
            Some(decoding_seconds * self.gateway_ratio.get().unwrap_or(1.0))
        })?;
        let object_gateway_seconds = cropped.object_gateway_seconds.get().unwrap_or_default();
        let saved_host_seconds = cropped.host_seconds.get().map_or(Some(0.0), |seconds| {
            Some(self.host_seconds(class, cropped.host_steps)? - seconds)
        })?;
        Some(Candidate {
            stage: Stage::CroppedJpeg,
            bytes: cropped.bytes_ratio.get().unwrap_or(share) * plain.bytes,
            gateway_seconds: (crop_ratio * gateway_seconds + object_ratio * object_gateway_seconds)
                * gateway_pace,
            host_seconds: (plain.host_seconds - crop_ratio * saved_host_seconds * host_pace).max(0.0),
            ..*plain
        })
    }
}

#[cfg(test)]
mod tests;

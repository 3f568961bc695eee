//! Offloads in effect on ports, with reasons, and the software steps that replace missing ones.
//!
//! - [`effective_offloads`] combines the features of the other side with the operator's settings
//!   and returns the offloads in effect, with a reason for each capability.
//! - [`egress_step`] returns the step that one frame requires for one egress.
//! - [`performer_at_device`] and [`performer`] return the component that performs the work: the
//!   guest, the uplink's device described by [`DeviceFeatures`], the kernel, or software.
//!
//! This crate does not access frame data (`suimon-frame` does) or devices. All functions are pure
//! and stateless; the caller of [`effective`] calls it again when a switch or the negotiated
//! features change, and publishes the result to the data plane.
//!
//! Invariants
//! - No offload is in effect that is unsupported or switched off.
//! - Segmentation is in effect only together with the checksum: the checksum of a segment is
//!   unknown before segmentation.
//! - After the step returned by [`egress_step`], the egress accepts every resulting frame.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod device;
mod effective;
mod egress_step;
mod performer;
mod reason;
mod toggles;

pub use device::{DeviceFeature, DeviceFeatures, FeatureState};
pub use effective::{EffectiveOffloads, FrameDirection, PortKind, effective_offloads};
pub use egress_step::{EgressStep, egress_step};
pub use performer::{Performer, PerformerChoice, is_supported, performer, performer_at_device};
pub use reason::{CapabilityStatus, OffloadCapability, OffloadReason};
pub use toggles::{OffloadToggle, OffloadToggles};

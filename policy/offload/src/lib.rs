//! Which offloads a port uses, why, and what software does in their place.
//!
//! - [`effective`]: from what the other side supports and what the operator
//!   switched on, what a port uses, with a reason for each capability.
//! - [`plan`]: for one frame and one egress, what has to happen to the frame.
//! - [`assign`], [`doer`]: who does the work: the guest, the uplink's device as
//!   [`DeviceFeatures`] describes it, the kernel, or software.
//!
//! What it does not do: it touches no frame's bytes (`suimon-frame` does), and
//! it talks to no device. All functions are pure and keep no state; whoever
//! calls [`effective`] does so again when a switch or the negotiated features
//! change, and publishes the result to the data plane.
//!
//! Invariants
//! - Nothing is effective that is not supported, or that is switched off.
//! - Segmentation is effective only together with the checksum: a segment's
//!   checksum cannot be known before it is cut.
//! - After the step that [`plan`] names, every resulting frame is one that the
//!   egress takes.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod device;
mod doer;
mod effective;
mod plan;
mod reason;
mod switches;

pub use device::{DeviceFeature, DeviceFeatures, FeatureState};
pub use doer::{Assignment, Doer, assign, doer, is_supported};
pub use effective::{Effective, PortKind, Side, effective};
pub use plan::{EgressStep, plan};
pub use reason::{Capability, Finding, Reason};
pub use switches::{OffloadSwitches, Switch};

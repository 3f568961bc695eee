//! A device of the suite's own, in virtual time: it keeps the rules, or breaks one that
//! a test names. So every case is seen to pass and to fail.

mod device;
mod flaw;
mod port;
mod tests;
mod wire;

use device::Device;
use flaw::Flaw;
use wire::VirtualWorld;

//! A virtual device in virtual time, which conforms to the standard or violates one rule selected
//! by the test. With it, every case is shown to pass and to fail.

mod device;
mod flaw;
mod port;
mod tests;
mod wire;

use device::Device;
use flaw::Flaw;
use wire::VirtualWorld;

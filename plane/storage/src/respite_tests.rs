//! When a queue is left alone, and for how long.

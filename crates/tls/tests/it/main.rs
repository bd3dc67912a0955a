//! Sessions with each other, through memory.

mod certificates;
mod hellos;
mod old;
mod pairs;
mod records;
mod resumption;
mod trust;

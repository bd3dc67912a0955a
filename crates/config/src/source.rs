//! The files a configuration is read from: `-f` files and directories, and what follows `--`.

//! Longer texts of `--help`.

/// `scry completions --help`.
pub const COMPLETIONS_HELP: &str = "\
Examples:
  scry completions bash > ~/.local/share/bash-completion/completions/scry
  scry completions zsh > \"${fpath[1]}/_scry\"
  scry completions fish > ~/.config/fish/completions/scry.fish
  scry completions powershell >> $PROFILE

Open a new shell afterwards.";

/// `scry man --help`.
pub const MAN_HELP: &str = "\
Examples:
  scry man run | man -l -
  scry man -o ~/.local/share/man/man1";

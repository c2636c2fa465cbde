package agents

import "aob.dev/writ/state/document"

// Fault is one fault of a definition or a registry.
type Fault = document.Fault //nolint:errname // a finding first

// Faults are all that is wrong, one a line.
type Faults = document.Faults //nolint:errname // findings first

package agents

import "aob.dev/writ/agentic/document"

// Fault is one thing that is wrong with a definition or a registry.
type Fault = document.Fault //nolint:errname // a finding first

// Faults are all that is wrong, one a line.
type Faults = document.Faults //nolint:errname // findings first

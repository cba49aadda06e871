// Package ids names what the page, the boot script and the end-to-end tests must agree on: element
// ids, data attributes and storage keys. An id is stable; where something is listed here, tests and
// links from outside may rely on it.
package ids

// Ids of elements of the page.
const (
	Preset     = "preset"      // <select> of presets; values are preset slugs
	SideA      = "side-a"      // button: show and edit A
	SideB      = "side-b"      // button: show and edit B
	Compare    = "compare"     // button: A and B on one axis
	Share      = "share"       // button: writes the link to the address and the clipboard
	ShareLink  = "share-link"  // text field with the link, once shared
	Export     = "export"      // button
	Theme      = "theme"       // button
	Help       = "help"        // button: opens HelpDialog
	HelpDialog = "help-dialog" // holds the link to THIRD_PARTY_NOTICES.txt
	Undo       = "undo"        // button
	Redo       = "redo"        // button
	TabForm    = "tab-form"    // button: configuration as a form
	TabYAML    = "tab-yaml"    // button: configuration as text
	Editor     = "editor"      // <yaml-editor>
	Problems   = "problems"    // list of problems; one child with AttrProblem per problem
	Import     = "import"      // button
	Figures    = "figures"     // the key figures
	Timeline   = "timeline"    // the focusable plot; its canvas is TimelineCanvas
	Canvas     = "timeline-canvas"
	Inspector  = "inspector"

	TimelineTable = "timeline-as-table" // the focusable frame of the timeline's table
	Status        = "status"
	TabBuckets    = "tab-buckets"
	TabDiff       = "tab-differences"
	TabFour       = "tab-versions" // the four framework versions
	TabColls      = "tab-collectives"
	TabNumerics   = "tab-numerics"
	TabFindings   = "tab-findings"
	Findings      = "findings"        // list; one child with data-rule per finding
	FrameTable    = "framework-table" // the configuration on other frameworks
	Lab           = "lab"             // the tab Numerics
	LabRun        = "lab-run"         // button
	LabPause      = "lab-pause"       // button: Pause, then Resume
	LabCancel     = "lab-cancel"      // button
	LabRows       = "lab-rows"        // table: one row a variant, its losses in AttrValue of the cells
	LabChecks     = "lab-checks"      // what every step compares
	LabProgress   = "lab-progress"
	LabNumber     = "lab-number" // the number to inspect
	LabElement    = "lab-element"
	CollTable     = "collective-table"
	Buckets       = "buckets"        // the bucket picture
	BucketTable   = "bucket-table"   // the same as a table
	DiffTable     = "diff-table"     // table of differences of Compare
	FourTable     = "four-table"     // the two changes taken apart: four combinations
	Busy          = "busy"           // card shown while a simulation runs for longer than 100 ms
	Cancel        = "cancel"         // its button
	WorkerStop    = "worker-stopped" // card: the simulator stopped
	Restart       = "restart"        // its button
	Live          = "live"           // polite live region
	SplitConfig   = "split-config"   // separators between panes
	SplitTimeline = "split-timeline"
	ConfigPane    = "config"
	TimelinePane  = "timeline-pane"
)

// Ids of the key figures; the element's data-value holds the bare number (ns, fraction, bytes or
// count, as in report.Figures), its text what the visitor reads.
const (
	StepTime    = "figure-step-time"
	Tokens      = "figure-tokens"
	MFU         = "figure-mfu"
	Exposed     = "figure-exposed"
	Overlap     = "figure-overlap"
	Memory      = "figure-memory"
	Utilisation = "figure-utilisation"
	Amax        = "figure-amax"
)

// Data attributes.
const (
	AttrValue   = "data-value"   // bare number behind a figure
	AttrField   = "data-field"   // on a form control: the field's path, "model.optim.bucket_cap_mb"
	AttrProblem = "data-problem" // on a problem: "error" or "warning"
	AttrBucket  = "data-bucket"  // on whatever stands for a bucket: its number
	AttrLit     = "data-lit"     // "1" on what belongs to the selection
)

// Data attributes of <html>: what a script outside can wait for.
const (
	AttrReady   = "data-ready"   // "1": mounted, and the first worker answered
	AttrShown   = "data-shown"   // number of results on screen so far; grows after the draw
	AttrStopped = "data-stopped" // "1": boot.js shows its last message
)

// Storage. boot.js reads the texts when the program has stopped; its Reload sets RestoreFlag, and the
// page that then starts takes the texts instead of the preset (a link in the hash still comes first
// if the texts are missing) and clears the flag.
const (
	StorageA    = "distopt.a"       // sessionStorage: A as typed
	StorageB    = "distopt.b"       // sessionStorage: B as typed
	RestoreFlag = "distopt.restore" // sessionStorage: "1"
)

// Element and event names of the editor.
const (
	EditorTag       = "yaml-editor"
	EventDocChange  = "doc-change"  // the visitor changed the text; detail is the new text
	EventDocSubmit  = "doc-submit"  // Ctrl+Enter
	EventDocUndo    = "doc-undo"    // Ctrl+Z in the editor; preventDefault keeps the editor's own history out
	EventDocRedo    = "doc-redo"    // Ctrl+Shift+Z, Ctrl+Y; the same
	PropValue       = "value"       // string, get and set; setting fires no event
	PropDiagnostics = "diagnostics" // JSON array of importer.Diagnostic
	PropCompletions = "completions" // JSON array of {path, detail, info}
)

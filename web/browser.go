package web

import (
	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/web/ids"
	"distopt/web/state"
)

func element(id string) app.Value {
	return app.Window().Get("document").Call("getElementById", id)
}

// after runs f once, some milliseconds from now.
func after(ms int, f func()) {
	var once app.Func
	once = app.FuncOf(func(app.Value, []app.Value) any {
		once.Release()
		f()
		return nil
	})
	app.Window().Call("setTimeout", once, ms)
}

// frames runs f after n animation frames.
func frames(n int, f func()) {
	var once app.Func
	once = app.FuncOf(func(app.Value, []app.Value) any {
		once.Release()
		if n > 1 {
			frames(n-1, f)
		} else {
			f()
		}
		return nil
	})
	app.Window().Call("requestAnimationFrame", once)
}

// settle calls done or failed when a promise settles; either may be nil.
func settle(promise app.Value, done func(app.Value), failed func()) {
	var ok, bad app.Func
	release := func() { ok.Release(); bad.Release() }
	ok = app.FuncOf(func(_ app.Value, args []app.Value) any {
		release()
		if done != nil {
			done(args[0])
		}
		return nil
	})
	bad = app.FuncOf(func(app.Value, []app.Value) any {
		release()
		if failed != nil {
			failed()
		}
		return nil
	})
	promise.Call("then", ok, bad)
}

// attempt runs f and swallows what the browser throws.
func attempt(f func()) {
	defer func() { _ = recover() }()
	f()
}

// download offers text as a file.
func download(name, text string) {
	window := app.Window()
	blob := window.Get("Blob").New(app.ValueOf([]any{text}), map[string]any{"type": "text/csv;charset=utf-8"})
	address := window.Get("URL").Call("createObjectURL", blob)
	a := window.Get("document").Call("createElement", "a")
	a.Set("href", address)
	a.Set("download", name)
	a.Call("click")
	after(1000, func() { window.Get("URL").Call("revokeObjectURL", address) })
}

var dialogIDs = map[state.Dialog]string{state.Help: ids.HelpDialog, state.ShareDialog: "share-dialog", state.ImportDialog: "import-dialog"}

// openDialog opens one dialog and closes the others.
func openDialog(which state.Dialog) {
	for kind, id := range dialogIDs {
		el := element(id)
		if !el.Truthy() {
			continue
		}
		switch open := el.Get("open").Bool(); {
		case kind == which && !open:
			el.Call("showModal")
		case kind != which && open:
			el.Call("close")
		}
	}
}

func (r *root) readFile(file app.Value) {
	name := file.Get("name").String()
	if file.Get("size").Int() > state.ImportLimit {
		r.send(state.FileRefused{Name: name, Reason: state.TooLarge})
		return
	}
	settle(file.Call("text"), func(text app.Value) {
		r.send(state.Imported{Name: name, Text: text.String()})
	}, func() {
		r.send(state.FileRefused{Name: name, Reason: "The file could not be read."})
	})
}

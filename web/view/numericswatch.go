package view

import (
	"strconv"

	"github.com/maxence-charriere/go-app/v9/pkg/app"

	"distopt/core/lab"
	"distopt/web/derive"
	"distopt/web/state"
)

// LabWatch picks the tensor, and the variant of it, that pictures and tables show.
type LabWatch struct {
	app.Compo
	Mail *Mailbox
	VM   *derive.Numerics
}

// Render places three lists.
func (w *LabWatch) Render() app.UI {
	vm := w.VM
	return app.Elem("div").Class("labfields labwatch").Hidden(len(vm.Rows) == 0).Body(
		choice("lab-tensor", "Tensor", vm.Tensors, w.onTensor),
		choice("lab-view", "Variant", vm.Views, w.onView),
		choice("lab-part", "Histogram of", vm.Parts, w.onPart),
	)
}

// OnMount and OnUpdate write what is picked as a property.
func (w *LabWatch) OnMount(app.Context)  { w.write() }
func (w *LabWatch) OnUpdate(app.Context) { w.write() }

func (w *LabWatch) write() {
	pick := func(id string, options []derive.Option) {
		for _, o := range options {
			if o.Selected {
				write(id, o.Value)
			}
		}
	}
	pick("lab-tensor", w.VM.Tensors)
	pick("lab-view", w.VM.Views)
	pick("lab-part", w.VM.Parts)
}

func (w *LabWatch) onTensor(ctx app.Context, _ app.Event) {
	i, _ := strconv.Atoi(typed(ctx))
	w.Mail.Post(state.LabTensorPicked{Tensor: i})
}

func (w *LabWatch) onView(ctx app.Context, _ app.Event) {
	i, _ := strconv.Atoi(typed(ctx))
	w.Mail.Post(state.LabViewPicked{Variant: i})
}

func (w *LabWatch) onPart(ctx app.Context, _ app.Event) {
	w.Mail.Post(state.LabPartPicked{Part: lab.Part(typed(ctx))})
}

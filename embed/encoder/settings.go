package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/helve-ai/helve/embed/matrix"
)

// settings are what the files beside the weights say of a model.
type settings struct {
	ModelType    string  `json:"model_type"`
	Vocabulary   int     `json:"vocab_size"`
	HiddenSize   int     `json:"hidden_size"`
	Layers       int     `json:"num_hidden_layers"`
	Heads        int     `json:"num_attention_heads"`
	Intermediate int     `json:"intermediate_size"`
	Activation   string  `json:"hidden_act"`
	Positions    int     `json:"max_position_embeddings"`
	Types        int     `json:"type_vocab_size"`
	Epsilon      float64 `json:"layer_norm_eps"`
	Padding      *int    `json:"pad_token_id"`
	PositionType string  `json:"position_embedding_type"`

	activate   func(*matrix.Matrix)
	firstPlace int  // the position of the first token
	maxTokens  int  // of a text
	lowercase  bool // before tokenising
	firstToken bool // its row is the vector, not the mean of all
}

func inside(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }

// readJSON reads a file of the folder into v. Without one it returns false.
func readJSON(dir, name string, v any) (bool, error) {
	data, err := os.ReadFile(inside(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return true, fmt.Errorf("%s: %w", inside(dir, name), err)
	}
	return true, nil
}

func readSettings(dir string) (s settings, err error) {
	s.Epsilon = 1e-12
	there, err := readJSON(dir, "config.json", &s)
	if err != nil {
		return s, err
	}
	if !there {
		return s, fmt.Errorf("%s: there is no config.json: this is not the folder of a model", dir)
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("%s: %w", inside(dir, "config.json"), err)
	}
	s.maxTokens = s.Positions - s.firstPlace
	var bert struct {
		MaxLength int  `json:"max_seq_length"`
		Lowercase bool `json:"do_lower_case"`
	}
	if _, err := readJSON(dir, "sentence_bert_config.json", &bert); err != nil {
		return s, err
	}
	s.lowercase = bert.Lowercase
	s.bound(bert.MaxLength)
	return s, s.readModules(dir)
}

// bound lowers the number of tokens that are read of a text; zero does not.
func (s *settings) bound(limit int) {
	if limit > 0 {
		s.maxTokens = min(s.maxTokens, limit)
	}
}

var activations = map[string]func(*matrix.Matrix){
	"gelu": matrix.GELU, "relu": matrix.ReLU,
	"gelu_new": matrix.GELUTanh, "gelu_pytorch_tanh": matrix.GELUTanh, "gelu_fast": matrix.GELUTanh,
}

// maxSize bounds each of a model's dimensions.
const maxSize = 1 << 22

func (s *settings) check() error {
	switch s.ModelType {
	case "bert":
	case "roberta", "xlm-roberta", "camembert":
		if s.Padding == nil {
			return errors.New("there is no pad_token_id, from which positions are counted")
		}
		s.firstPlace = *s.Padding + 1
	default:
		return fmt.Errorf("model_type %q is not known; bert, roberta, xlm-roberta and camembert are", s.ModelType)
	}
	if s.PositionType != "" && s.PositionType != "absolute" {
		return fmt.Errorf("position_embedding_type %q is not known; absolute is", s.PositionType)
	}
	if s.activate = activations[s.Activation]; s.activate == nil {
		return fmt.Errorf("hidden_act %q is not known; gelu, gelu_new and relu are", s.Activation)
	}
	sizes := []int{s.Vocabulary, s.HiddenSize, s.Layers, s.Heads, s.Intermediate, s.Positions, s.Types}
	if slices.Min(sizes) < 1 || slices.Max(sizes) > maxSize || s.HiddenSize%s.Heads != 0 || s.firstPlace < 0 || s.firstPlace >= s.Positions {
		return fmt.Errorf("vocabulary, hidden size, layers, heads, intermediate size, positions and types are %d, which no model has", sizes)
	}
	return nil
}

// readModules reads which steps follow the transformer.
func (s *settings) readModules(dir string) error {
	var modules []struct{ Type, Path string }
	if _, err := readJSON(dir, "modules.json", &modules); err != nil {
		return err
	}
	pooling := "1_Pooling"
	for _, m := range modules {
		switch path.Ext(m.Type) {
		case ".Pooling":
			pooling = m.Path
		case ".Transformer":
			if m.Path != "" {
				return fmt.Errorf("%s: the transformer is in %s; it is read from the folder itself", inside(dir, "modules.json"), m.Path)
			}
		case ".Normalize":
		default:
			return fmt.Errorf("%s: %s is not known; Transformer, Pooling and Normalize are", inside(dir, "modules.json"), m.Type)
		}
	}
	if !filepath.IsLocal(pooling) {
		return fmt.Errorf("%s: %q lies outside the folder", inside(dir, "modules.json"), pooling)
	}
	return s.readPooling(dir, path.Join(pooling, "config.json"))
}

func (s *settings) readPooling(dir, name string) error {
	modes := map[string]any{}
	if there, err := readJSON(dir, name, &modes); err != nil || !there {
		return err
	}
	var on []string
	for mode, is := range modes {
		if yes, _ := is.(bool); yes && mode != "include_prompt" {
			on = append(on, mode)
		}
	}
	switch {
	case slices.Equal(on, []string{"pooling_mode_mean_tokens"}):
	case slices.Equal(on, []string{"pooling_mode_cls_token"}):
		s.firstToken = true
	default:
		return fmt.Errorf("%s: the modes are %q; either mean_tokens or cls_token is computed", inside(dir, name), on)
	}
	return nil
}
